// Package records reads capture files as a whole, for tests.
package records

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
)

// Of returns all records of a capture file.
func Of(t testing.TB, file string) (all []capture.Record) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := capture.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := src.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Data = bytes.Clone(r.Data) // the source uses its memory again
		all = append(all, r)
	}
}
