// As in the toolkit, the header that programs include; here it adds nothing.
#pragma once

#include "cuda_runtime_api.h"
