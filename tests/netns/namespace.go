package netns

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Namespace is a network namespace with its loopback up.
type Namespace struct {
	handle netns.NsHandle
	nl     *netlink.Handle
}

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

// Open makes a namespace that lasts until it is closed, and nobody uses it.
func Open() (*Namespace, error) {
	n, err := newNamespace()
	if err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	if err := n.setUp("lo", true); err != nil {
		n.Close()
		return nil, fmt.Errorf("bring up the loopback: %w", err)
	}
	return n, nil
}

// Close lets go of the namespace.
func (n *Namespace) Close() {
	n.nl.Close()
	n.handle.Close()
}

func newNamespace() (*Namespace, error) {
	runtime.LockOSThread()
	here, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer leave(here)
	handle, err := netns.New()
	if err != nil {
		return nil, err
	}
	nl, err := netlink.NewHandleAt(handle)
	if err != nil {
		handle.Close()
		return nil, err
	}
	return &Namespace{handle: handle, nl: nl}, nil
}

// In calls f on this goroutine with its thread in the namespace: sockets that f
// opens and processes that it starts belong there. Goroutines that f starts do
// not.
func (n *Namespace) In(f func()) {
	runtime.LockOSThread()
	here, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		panic(fmt.Sprintf("netns: look at this network namespace: %v", err))
	}
	defer leave(here)
	if err := netns.Set(n.handle); err != nil {
		panic(fmt.Sprintf("netns: enter a network namespace: %v", err))
	}
	f()
}

// leave takes the thread back to where it came from. A thread that cannot go
// back must not be used for anything else.
func leave(to netns.NsHandle) {
	defer to.Close()
	if err := netns.Set(to); err != nil {
		panic(fmt.Sprintf("netns: leave a network namespace: %v", err))
	}
	runtime.UnlockOSThread()
}

func (n *Namespace) setUp(device string, up bool) error {
	link, err := n.nl.LinkByName(device)
	if err != nil {
		return fmt.Errorf("device %s: %w", device, err)
	}
	if up {
		return n.nl.LinkSetUp(link)
	}
	return n.nl.LinkSetDown(link)
}
