/* What doctor asks of a CUDA driver, and nothing else: two devices, or an error where CUDA_ERROR names one. The second has
 * memory pools unless CUDA_WITHOUT_POOLS is set.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int cuInit(unsigned flags) {
  const char* const error = getenv("CUDA_ERROR");
  (void)flags;
  return error ? atoi(error) : 0;
}

int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  snprintf(name, (size_t)size, "Fake device %d", device);
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = ((size_t)device + 1) << 30;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const int memory_pools_supported = 115;
  *value = device == 0 || !getenv("CUDA_WITHOUT_POOLS");
  return attribute == memory_pools_supported ? 0 : 1;
}
