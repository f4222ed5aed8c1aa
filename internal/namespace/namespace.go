package namespace

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Namespace is a network namespace with its loopback up.
type Namespace struct {
	Handle netns.NsHandle
	Links  *netlink.Handle // talks to the kernel about its devices
}

// Open makes a namespace that lasts until it is closed, and nobody uses it.
func Open() (*Namespace, error) {
	n, err := newNamespace()
	if err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	if err := n.BringUp("lo", true); err != nil {
		n.Close()
		return nil, fmt.Errorf("bring up the loopback: %w", err)
	}
	return n, nil
}

// Close lets go of the namespace.
func (n *Namespace) Close() {
	n.Links.Close()
	n.Handle.Close()
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
	return &Namespace{Handle: handle, Links: nl}, nil
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
	if err := netns.Set(n.Handle); err != nil {
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

// BringUp brings a device up or down.
func (n *Namespace) BringUp(device string, up bool) error {
	link, err := n.Links.LinkByName(device)
	if err != nil {
		return fmt.Errorf("device %s: %w", device, err)
	}
	if up {
		return n.Links.LinkSetUp(link)
	}
	return n.Links.LinkSetDown(link)
}
