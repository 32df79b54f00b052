// The forms of functions with a stream that programs call which were built for per-thread default streams:
// for them stream 0 is the thread's own. The copies' forms stand with the copies.
#include "tests/simcuda/driver/work.h"

SIM_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return cuMemAllocAsync(dptr, bytesize, sim::PerThread(hStream));
}

SIM_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                                 CUstream hStream) {
  return cuMemAllocFromPoolAsync(dptr, bytesize, pool, sim::PerThread(hStream));
}

SIM_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
  return cuMemFreeAsync(dptr, sim::PerThread(hStream));
}

SIM_EXPORT CUresult cuStreamGetPriority_ptsz(CUstream hStream, int* priority) {
  return cuStreamGetPriority(sim::PerThread(hStream), priority);
}

SIM_EXPORT CUresult cuStreamGetFlags_ptsz(CUstream hStream, unsigned int* flags) {
  return cuStreamGetFlags(sim::PerThread(hStream), flags);
}

SIM_EXPORT CUresult cuStreamGetId_ptsz(CUstream hStream, unsigned long long* streamId) {
  return cuStreamGetId(sim::PerThread(hStream), streamId);
}

SIM_EXPORT CUresult cuStreamGetDevice_ptsz(CUstream hStream, CUdevice* device) {
  return cuStreamGetDevice(sim::PerThread(hStream), device);
}

SIM_EXPORT CUresult cuStreamGetCtx_ptsz(CUstream hStream, CUcontext* pctx) {
  return cuStreamGetCtx(sim::PerThread(hStream), pctx);
}

SIM_EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  return cuStreamWaitEvent(sim::PerThread(hStream), hEvent, Flags);
}

SIM_EXPORT CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void* userData,
                                             unsigned int flags) {
  return cuStreamAddCallback(sim::PerThread(hStream), callback, userData, flags);
}

SIM_EXPORT CUresult cuStreamQuery_ptsz(CUstream hStream) { return cuStreamQuery(sim::PerThread(hStream)); }

SIM_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream hStream) {
  return cuStreamSynchronize(sim::PerThread(hStream));
}

SIM_EXPORT CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void* userData) {
  return cuLaunchHostFunc(sim::PerThread(hStream), fn, userData);
}

SIM_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                        void** kernelParams, void** extra) {
  return cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                        sim::PerThread(hStream), kernelParams, extra);
}

SIM_EXPORT CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream) {
  return cuEventRecord(hEvent, sim::PerThread(hStream));
}

SIM_EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags) {
  return cuEventRecordWithFlags(hEvent, sim::PerThread(hStream), flags);
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
  return cuStreamBeginCapture(sim::PerThread(hStream), mode);
}

SIM_EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph,
                                                     const CUgraphNode* dependencies,
                                                     const CUgraphEdgeData* dependencyData,
                                                     size_t numDependencies, CUstreamCaptureMode mode) {
  return cuStreamBeginCaptureToGraph(sim::PerThread(hStream), hGraph, dependencies, dependencyData,
                                     numDependencies, mode);
}

SIM_EXPORT CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph* phGraph) {
  return cuStreamEndCapture(sim::PerThread(hStream), phGraph);
}

SIM_EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return cuStreamIsCapturing(sim::PerThread(hStream), captureStatus);
}

SIM_EXPORT CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                                   cuuint64_t* id_out, CUgraph* graph_out,
                                                   const CUgraphNode** dependencies_out,
                                                   const CUgraphEdgeData** edgeData_out,
                                                   size_t* numDependencies_out) {
  return cuStreamGetCaptureInfo(sim::PerThread(hStream), captureStatus_out, id_out, graph_out,
                                dependencies_out, edgeData_out, numDependencies_out);
}

SIM_EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return cuGraphUpload(hGraphExec, sim::PerThread(hStream));
}

SIM_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return cuGraphLaunch(hGraphExec, sim::PerThread(hStream));
}
