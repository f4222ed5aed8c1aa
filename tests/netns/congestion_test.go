package netns

import (
	"os"
	"strings"
	"testing"
)

// TestSetController: of this namespace alone, and of none that the kernel does not have.
func TestSetController(t *testing.T) {
	Require(t)
	read := func() string {
		b, err := os.ReadFile(controllerFile)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	before, n := read(), New(t)
	if err := n.SetController("reno"); err != nil {
		t.Fatal(err)
	}
	there := ""
	n.In(func() { there = read() })
	if there != "reno" || read() != before {
		t.Errorf("%s there, %s here where it was %s", there, read(), before)
	}
	if err := n.SetController("no-such"); err == nil {
		t.Error("a controller that is not there was set")
	}
}
