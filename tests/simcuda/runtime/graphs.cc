// Capture and graphs.
#include "tests/simcuda/runtime/driver.h"

using simrt::Driver;
using simrt::WithContext;

SIM_BOTH(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode), {
  return WithContext([&](const Driver& driver) {
    return driver.cuStreamBeginCapture[form](stream, static_cast<CUstreamCaptureMode>(mode));
  });
})

SIM_BOTH(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t* pGraph), {
  return WithContext([&](const Driver& driver) { return driver.cuStreamEndCapture[form](stream, pGraph); });
})

SIM_BOTH(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus* pCaptureStatus), {
  return WithContext([&](const Driver& driver) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult error = driver.cuStreamIsCapturing[form](stream, pCaptureStatus == nullptr ? nullptr : &status);
    if (error == CUDA_SUCCESS) *pCaptureStatus = static_cast<cudaStreamCaptureStatus>(status);
    return error;
  });
})

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return simrt::WithDriver([&](const Driver& driver) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto exchanged = static_cast<CUstreamCaptureMode>(*mode);
    CUresult error = driver.cuThreadExchangeStreamCaptureMode(&exchanged);
    *mode = static_cast<cudaStreamCaptureMode>(exchanged);
    return error;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  return WithContext(
      [&](const Driver& driver) { return driver.cuGraphInstantiate(pGraphExec, graph, flags); });
}

SIM_BOTH(cudaGraphLaunch, _ptsz, (cudaGraphExec_t graphExec, cudaStream_t stream), {
  return WithContext([&](const Driver& driver) { return driver.cuGraphLaunch[form](graphExec, stream); });
})

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  return WithContext([&](const Driver& driver) { return driver.cuGraphExecDestroy(graphExec); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return WithContext([&](const Driver& driver) { return driver.cuGraphDestroy(graph); });
}
