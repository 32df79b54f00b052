"""Why this exists: the first thing anybody types is wrong, and what comes back decides whether they go on."""

import os
import subprocess
import unittest

import command


class Main(command.CommandTest):
    def test_version(self):
        self.assertRegex(self.ok("--version").out, r"^reprise \d+\.\d+\.\d+\n$")

    def test_help_names_every_command(self):
        out = self.ok("--help").out
        for name in ("run", "plan", "check", "simulate", "stats", "doctor"):
            self.assertRegex(out, rf"(?m)^  {name} ")

    def test_help_of_every_command_has_an_example(self):
        for name in ("run", "plan", "check", "simulate", "stats", "doctor"):
            self.assertIn(f"Example:\n  reprise {name}", self.ok(name, "--help").out)

    def test_nothing(self):
        self.fails(2, says="subcommand is required")

    def test_mistyped_command(self):
        self.fails(2, "simulat", "x", says='no command "simulat"; did you mean "simulate"\\?')

    def test_what_is_no_command_at_all(self):
        self.assertNotIn("did you mean", self.fails(2, "xylophone").err)

    def test_unknown_flag(self):
        self.fails(2, "plan", "x.csv", "--colour", says="--colour")

    def test_missing_argument(self):
        self.fails(2, "check", "x.csv", says="PLAN")

    def test_sizes_and_times_that_are_none(self):
        self.fails(2, "plan", "x.csv", "--capacity", "lots", says='"lots" is not a size')
        self.fails(2, "plan", "x.csv", "--capacity", "-1", says="not a size")
        for size in ("8EiB", "99999999999999999999", "9000.5PB"):
            self.fails(2, "plan", "x.csv", "--capacity", size, says=f'"{size}" is too large: a size is below 8EiB')
        self.fails(2, "plan", "x.csv", "--time-limit", "soon", says='"soon" is not a time')

    def test_standard_input_is_not_to_be_read_again(self):
        self.write("a.csv", command.LIFETIMES)
        self.write("e.csv", command.EVENTS)
        self.ok("plan", "a.csv", "-o", "a.json")
        for name, *words in (("a.csv", "plan", "IN"), ("a.csv", "plan", "IN", "-o", "b.json"), ("a.csv", "stats", "IN"),
                             ("e.csv", "stats", "IN"), ("e.csv", "simulate", "IN"), ("e.csv", "compare", "IN"),
                             ("a.csv", "check", "IN", "a.json"), ("e.csv", "diff", "e.csv", "IN"),
                             ("e.csv", "convert", "IN", "e.folded")):
            with self.subTest(words=words):
                of_file = self.ok(*[name if word == "IN" else word for word in words])
                self.assertIn("reprise: next: ", of_file.err)
                of_input = self.ok(*["-" if word == "IN" else word for word in words], input=self.read(name))
                self.assertNotIn("reprise: next: ", of_input.err)
        self.assertIn("next: reprise stats e2.csv", self.ok("convert", "-", "e2.csv", input=self.read("e.csv")).err)

    def test_an_empty_value_is_no_value_left_out(self):
        self.write("a.csv", command.LIFETIMES)
        for option, *words in (
            ("-o", "plan", "a.csv", "-o", ""),
            ("-o", "report", "a.csv", "-o", ""),
            ("--keep", "plan", "a.csv", "--keep", "", "-o", "p.json"),
            ("--out", "run", "--mode", "off", "--out", "", "--", "true"),
            ("OUT", "convert", "a.csv", "", "--to", "json"),
            ("INPUT", "convert", "", "a.json"),
            ("INPUT", "stats", "a.csv", ""),
        ):
            with self.subTest(words=words):
                self.fails(2, *words, says=rf"^reprise: {option}: an empty name or value; is a variable not set\?\n")
        self.assertEqual(os.listdir(self.folder), ["a.csv"])
        self.ok("run", "--mode", "off", "--", "test", "-z", "")

    def test_off_says_what_comes_to_nothing(self):
        self.write("plans.json", "{}")
        for options in (["--stacks", "native"], ["--timeline"], ["--out", "o"], ["--plan", "plans.json"], ["--cache", "kept"],
                        ["--report"]):
            done = self.reprise("run", "--mode", "off", *options, "--", "sh", "-c", "exit 4")
            self.assert_status(done, 4)
            self.assertEqual(done.err, f"reprise: --mode is off: nothing will be caught, and {options[0]} comes to nothing\n")

    def test_a_name_in_brackets_is_one_name(self):
        for name in ("[a,b]", "[e]"):
            self.write(name, command.EVENTS)
        self.write("[half].csv", "event,id,bytes,stream\nalloc,0,50,0\n")
        for words in (["stats", "[a,b]", "[e]"], ["plan", "[a,b]", "[e]", "-o", "[plans]"], ["report", "[e]", "-o", "[page]"],
                      ["simulate", "[e]"], ["compare", "[e]"], ["diff", "[e]", "[a,b]"], ["fit", "[half].csv@1", "[e]@2"],
                      ["convert", "[e]", "[out]", "--to", "events"]):
            with self.subTest(words=words):
                self.assertNotIn("\0", self.ok(*words).err)
        self.assertEqual(sorted(os.listdir(self.path("[plans]"))), ["[a,b].plan.json", "[e].plan.json"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["[a,b]", "[e]", "[half].csv", "[out]", "[page]", "[plans]"])
        self.assertEqual(self.json("stats", "[e]")["input"], "[e]")
        self.fails(2, "plan", "[e]", "-o", "[e]", says="input")
        self.assertEqual(self.read("[e]").decode(), command.EVENTS)
        self.fails(3, "merge", "[d]", says=r" \[d\]")
        self.fails(2, "check", "[e]", "[p]", "[more]", says=r"\[more\]\n")

    def test_a_name_like_an_option_is_given_back_as_a_name(self):
        self.write("-a.csv", command.LIFETIMES)
        self.write("-e.csv", command.EVENTS)
        self.assertIn("next: reprise plan ./-a.csv -o", self.ok("stats", "--", "-a.csv").err)
        self.assertIn("next: reprise simulate ./-e.csv\n", self.ok("stats", "--", "-e.csv").err)
        self.assertIn("next: reprise check ./-a.csv ./-p.json\n", self.ok("plan", "-o", "-p.json", "--", "-a.csv").err)
        self.ok("check", "./-a.csv", "./-p.json")

    def test_help_names_what_full_output_ends_with(self):
        self.assertIn("2 usage,\noutput that cannot be written (a full or closed stdout too)", self.ok("--help").out)

    def test_full_output(self):
        self.write("a.csv", command.LIFETIMES)
        for words in (["--help"], ["--version"], ["plan", "a.csv"], ["plan", "a.csv", "--json"], ["stats", "a.csv"]):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                self.fails(2, *words, capture_output=False, stdout=full, stderr=subprocess.PIPE,
                           says="standard output: No space left")

    def test_closed_output(self):
        self.write("a.csv", command.LIFETIMES)
        done = self.reprise("plan", "a.csv", capture_output=False, stderr=subprocess.PIPE,
                            preexec_fn=lambda: os.close(1))
        self.assert_status(done, 2)
        self.assertIn("standard output: Bad file descriptor", done.err)

    def test_where_a_submitted_job_will_write(self):
        self.write("sbatch", "#!/bin/sh\necho Submitted >&2\necho 77\n")
        os.chmod(self.path("sbatch"), 0o755)
        path = self.folder + ":" + os.environ["PATH"]
        for options, variable, folder in (
            ([], "", "reprise-out/77"),
            (["--out", "o %j"], "", "'o 77'"),
            (["--out=of-%j/%j"], "", "of-77/77"),
            (["--out", "50%%j"], "", "50%j"),
            (["--out", "of-%h"], "", None),
            ([], "/scratch/%j", "/scratch/77"),
            (["--out", "mine"], "/scratch/%j", "mine"),
            ([], "of-%h", None),
        ):
            env = {"PATH": path, "REPRISE_OUT": variable}
            done = self.ok("slurm", *options, "submit", "--", "true", env=env)
            if folder is None:
                self.assertNotIn("next:", done.err)
            else:
                self.assertIn(f"next: reprise merge {folder}\n", done.err)
        for elsewhere in (["-D", "/scratch"], ["-D/scratch"], ["--chdir=/scratch"]):
            done = self.ok("slurm", "submit", *elsewhere, "--", "true", env={"PATH": path})
            self.assertIn("job 77;", done.err)
            self.assertNotIn("next:", done.err)

    def test_options_that_contradict_each_other_are_refused_before_a_job_waits_for_its_turn(self):
        self.write("sbatch", "#!/bin/sh\ntouch queued\necho 77\n")
        os.chmod(self.path("sbatch"), 0o755)
        self.write("plans.json", "{}")
        path = self.folder + ":" + os.environ["PATH"]
        for options, says in (
            (["--host", "--timeline"], "--timeline is of what a CUDA device does"),
            (["--host", "--oversubscribe"], "--oversubscribe is for the memory of CUDA devices"),
            (["--host", "--mode", "record", "--plan", "plans.json"], "--plan is to be followed"),
            (["--host", "--mode", "record", "--cache", "kept"], "--cache is for plans"),
        ):
            for words in (["run", *options], ["slurm", *options], ["slurm", *options, "submit", "-N2"]):
                with self.subTest(words=words):
                    self.fails(2, *words, "--", "true", says=says, env={"PATH": path})
        self.assertNotIn("queued", os.listdir(self.folder))

    def test_what_sbatch_says_of_itself_is_no_job(self):
        self.write("sbatch", "#!/bin/sh\necho slurm-wlm 22.05.8\n")
        os.chmod(self.path("sbatch"), 0o755)
        done = self.ok("slurm", "submit", "--version", "--", "true", env={"PATH": self.folder + ":" + os.environ["PATH"]})
        self.assertEqual((done.out, done.err), ("slurm-wlm 22.05.8\n", ""))


if __name__ == "__main__":
    unittest.main()
