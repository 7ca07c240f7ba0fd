"""Memory for arrays that kernels allocate: the few functions of Numba's runtime that they call.

Numba's code for ``np.empty`` calls ``NRT_MemInfo_alloc_aligned``, counts the references to what it
gets, and calls ``NRT_MemInfo_call_dtor`` when none is left. The layout of the block is Numba's
(``numba/core/runtime/nrt.cpp``):

    references, destructor, its argument, data, size, allocator       6 words, then the data

``headrace_free`` is the destructor of the capsule that owns the memory of an array that a
kernel returned.
"""

from __future__ import annotations

RUNTIME = """
%block = type { i64, ptr, ptr, ptr, i64, ptr }

declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
entry:
  %wide = zext i32 %align to i64
  %extra = add i64 %wide, 48
  %total = add i64 %size, %extra
  %overflow = icmp ult i64 %total, %size
  br i1 %overflow, label %failed, label %allocate
allocate:
  %block = call ptr @malloc(i64 %total)
  %nothing = icmp eq ptr %block, null
  br i1 %nothing, label %failed, label %fill
fill:
  %start = ptrtoint ptr %block to i64
  %behind = add i64 %start, %extra
  %over = urem i64 %behind, %wide
  %address = sub i64 %behind, %over
  %data = inttoptr i64 %address to ptr
  %size_at = getelementptr %block, ptr %block, i32 0, i32 4
  %data_at = getelementptr %block, ptr %block, i32 0, i32 3
  store %block zeroinitializer, ptr %block
  store i64 1, ptr %block
  store ptr %data, ptr %data_at
  store i64 %size, ptr %size_at
  ret ptr %block
failed:
  ret ptr null
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %block = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %block
}

define ptr @NRT_Allocate(i64 %size) {
  %memory = call ptr @malloc(i64 %size)
  ret ptr %memory
}

define void @NRT_Free(ptr %memory) {
  call void @free(ptr %memory)
  ret void
}

define void @NRT_MemInfo_call_dtor(ptr %block) {
  call void @free(ptr %block)
  ret void
}

define void @headrace_free(ptr %capsule) {
entry:
  %block = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %before = atomicrmw sub ptr %block, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %release, label %done
release:
  call void @free(ptr %block)
  br label %done
done:
  ret void
}
"""
