#include "planner/plan_file.h"
