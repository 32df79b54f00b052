/* Where the fake core serves from: a range that the system gives to nobody who does not name it. */
#pragma once

#define FAKE_ARENA_BEGIN ((uintptr_t)0x200000000000)
#define FAKE_ARENA_END (FAKE_ARENA_BEGIN + ((uintptr_t)1 << 30))
#define FAKE_SERVED(block) ((uintptr_t)(block)-FAKE_ARENA_BEGIN < FAKE_ARENA_END - FAKE_ARENA_BEGIN)
