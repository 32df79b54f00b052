"""A real Slurm of two virtual nodes on this machine: its own keys, ports and folders, gone when it is stopped."""

import os
import shutil
import socket
import subprocess
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "sinfo")
CONFIGURATION = """ClusterName=ci
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={prolog}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=2
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MinJobAge=300
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=1000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=ci Nodes=ALL Default=YES MaxTime=10 State=UP
"""
# Nothing above uses cgroups, but the slurmd of 23.11 (not that of 22.05) does not start without a plugin for them. This
# one starts where none are mounted, as in a bare root.
CGROUPS = "CgroupPlugin=cgroup/v1\n"


def why_not():
    """What keeps it from being started here, or None."""
    missing = [program for program in PROGRAMS if not shutil.which(program, path=search_path())]
    if missing:
        return f"no {', '.join(missing)} here (scripts/setup test installs them)"
    return None if os.geteuid() == 0 else "Slurm's daemons need root"


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def wait_for(state, seconds=60):
    """Polls until `state()` is true; its last value, or an error when the time is over."""
    end = time.monotonic() + seconds
    while not (value := state()):
        if time.monotonic() > end:
            raise TimeoutError(f"{state} did not come true in {seconds} s")
        time.sleep(0.05)  # between two looks
    return value


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class VirtualCluster:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cluster-")
        os.chmod(self.folder, 0o755)
        os.mkdir(os.path.join(self.folder, "state"))
        self.daemons = []
        self.environment = {**os.environ, "SLURM_CONF": os.path.join(self.folder, "slurm.conf"), "PATH": search_path()}
        self.prolog = os.path.join(self.folder, "task-prolog")
        self.set_prolog("#!/bin/sh\n")
        with open(self.environment["SLURM_CONF"], "w", encoding="ascii") as out:
            out.write(CONFIGURATION.format(host=socket.gethostname().split(".")[0], folder=self.folder,
                                           prolog=self.prolog, ports=free_ports(3)))
        with open(os.path.join(self.folder, "cgroup.conf"), "w", encoding="ascii") as out:
            out.write(CGROUPS)

    def set_prolog(self, text):
        with open(self.prolog + ".new", "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(self.prolog + ".new", 0o755)
        os.replace(self.prolog + ".new", self.prolog)

    def start(self):
        key = os.path.join(self.folder, "key")
        with open(key, "wb") as out:
            out.write(os.urandom(128))
        os.chmod(key, 0o400)
        self.daemon("munged", "-F", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                    f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log",
                    f"--seed-file={self.folder}/munge.seed")
        wait_for(lambda: os.path.exists(f"{self.folder}/munge.socket"))
        self.daemon("slurmctld", "-D")
        for node in ("n1", "n2"):
            os.mkdir(os.path.join(self.folder, "spool." + node))
            self.daemon("slurmd", "-D", "-N", node)
        wait_for(lambda: self.ask("sinfo", "-h", "-o", "%T") == "idle")

    def daemon(self, *words):
        log = open(os.path.join(self.folder, "daemons.log"), "ab")
        self.daemons.append(subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=log))
        log.close()

    def ask(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True).stdout.strip()

    def does(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True).returncode == 0

    def show(self, job, what):
        """Of a job, also when it ended minutes ago: what="JobState" gives RUNNING, COMPLETED, ..."""
        for word in self.ask("scontrol", "show", "job", str(job)).split():
            if word.startswith(what + "="):
                return word.removeprefix(what + "=")
        return ""

    def stop(self):
        self.ask("scancel", "--user=root")
        try:
            wait_for(lambda: self.ask("squeue", "-h") == "", 15)
        except TimeoutError:
            pass
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
