package ether

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestNamespaceRefused checks that there is no AF_XDP socket where the namespace of the packet socket is neither
// known to be the thread's nor can be entered, and that just after that was opened it is the thread's.
func TestNamespaceRefused(t *testing.T) {
	netns.Require(t)
	none, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // no socket: it tells no namespace
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(none)
	_, err = socketBeside(none, false)
	if refused := (*namespaceError)(nil); !errors.As(err, &refused) || !errors.Is(err, unix.ENOTTY) || !strings.Contains(err.Error(), "another network namespace") {
		t.Errorf("%v", err)
	}
	fd, err := socketBeside(none, true)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}
