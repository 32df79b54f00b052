// For cuda_library_test.py: the types of the seam, held against the CUDA toolkit's by the compiler alone.
// replay/abi.h must be included before, because cuda.h renames the calls.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

#define NAME_OF(name) #name
#define NAME(name) NAME_OF(name)  // after the header's renaming

constexpr bool Same(std::string_view a, std::string_view b) { return a == b; }

// Passed in the same way: both addresses, or both whole numbers of one size.
template <typename A, typename B>
constexpr bool kSamePassed = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                             (std::is_pointer_v<A> || std::is_enum_v<A> || std::is_integral_v<A>);

template <typename A, typename B>
constexpr bool kAlike = false;
template <typename... A, typename... B>
requires(sizeof...(A) ==
         sizeof...(B)) constexpr bool kAlike<CUresult (*)(A...), int (*)(B...)> = (kSamePassed<A, B> && ...);

#define SAME_FIELD(ours, our_field, theirs, their_field)                      \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                    sizeof(ours::our_field) == sizeof(theirs::their_field),   \
                #ours "::" #our_field)

static_assert(sizeof(cu_address) == sizeof(CUdeviceptr));
static_assert(std::is_same_v<cu_stream, CUstream>);
static_assert(std::is_same_v<cu_context, CUcontext>);
static_assert(std::is_same_v<cu_pool, CUmemoryPool>);

static_assert(sizeof(cu_location) == sizeof(CUmemLocation));
SAME_FIELD(cu_location, type, CUmemLocation, type);
SAME_FIELD(cu_location, id, CUmemLocation, id);
static_assert(CU_MEM_LOCATION_TYPE_DEVICE == 1);

static_assert(sizeof(cu_access) == sizeof(CUmemAccessDesc));
SAME_FIELD(cu_access, location, CUmemAccessDesc, location);
SAME_FIELD(cu_access, flags, CUmemAccessDesc, flags);
static_assert(CU_MEM_ACCESS_FLAGS_PROT_NONE == 0 && CU_MEM_ACCESS_FLAGS_PROT_READ == 1 &&
              CU_MEM_ACCESS_FLAGS_PROT_READWRITE == 3);

static_assert(sizeof(cu_pool_props) == sizeof(CUmemPoolProps));
SAME_FIELD(cu_pool_props, allocation_type, CUmemPoolProps, allocType);
SAME_FIELD(cu_pool_props, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(cu_pool_props, location, CUmemPoolProps, location);
SAME_FIELD(cu_pool_props, security, CUmemPoolProps, win32SecurityAttributes);
SAME_FIELD(cu_pool_props, max_bytes, CUmemPoolProps, maxSize);
SAME_FIELD(cu_pool_props, usage, CUmemPoolProps, usage);
static_assert(CU_MEM_ALLOCATION_TYPE_PINNED == 1 && CU_MEM_HANDLE_TYPE_NONE == 0);

static_assert(CUDA_ERROR_NOT_FOUND == 500 && CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM == 2);
