package gcm

import "unsafe"

// crosses reports whether two slices have bytes in common, and do not begin with the same one.
func crosses(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x != y && x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}
