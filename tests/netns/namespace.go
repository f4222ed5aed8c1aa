package netns

import (
	"testing"

	"github.com/dgrdma/dgrdma/internal/namespace"
)

// Namespace is a network namespace with its loopback up.
type Namespace struct{ *namespace.Namespace }

// New makes a namespace that lasts until the test ends.
func New(t testing.TB) *Namespace {
	t.Helper()
	n, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// Open makes a namespace that lasts until it is closed, for programs that are no tests.
func Open() (*Namespace, error) {
	n, err := namespace.Open()
	return &Namespace{n}, err
}
