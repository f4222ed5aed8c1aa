// Package tried has targets of which some fail.
package tried

import "testing"

func FuzzGood(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {})
}

func FuzzBad(f *testing.F) {
	f.Add([]byte("abc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if string(b) != "abc" {
			t.Fatal("another input")
		}
	})
}

func FuzzAtOnce(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) { t.Error("this seed") })
}
