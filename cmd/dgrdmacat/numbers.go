package main

import "fmt"

// sizeInWords is an amount of bytes for people.
func sizeInWords(n uint64) string {
	for shift, unit := 30, 2; unit >= 0; shift, unit = shift-10, unit-1 {
		if n>>shift > 0 && n&(1<<shift-1) == 0 {
			return fmt.Sprintf("%d bytes (%d %ciB)", n, n>>shift, "KMG"[unit])
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
