package netns

import (
	"testing"

	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/internal/namespace"
)

// Path is two namespaces with a slow path between them, whose bottleneck flows share.
type Path struct {
	Pair
	Router *emulator.Router
}

// NewPath makes a path that lasts until the test ends.
func NewPath(t testing.TB, mtu int, cfg emulator.Config) *Path {
	t.Helper()
	p, err := OpenPath(mtu, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// OpenPath makes a path that lasts until it is closed. Side 0 has the addresses of its
// Trips, too.
func OpenPath(mtu int, cfg emulator.Config) (*Path, error) {
	fabric, ports, err := namespace.OpenFabric(mtu)
	if err != nil {
		return nil, err
	}
	pair := pairOf(fabric)
	for ip := range cfg.Trips {
		if err == nil {
			err = pair[0].AddAddress(Device, ip)
		}
	}
	if err != nil {
		pair.Close()
		ports[0].Close()
		ports[1].Close()
		return nil, err
	}
	r, err := emulator.Start(cfg, ports)
	if err != nil {
		pair.Close()
		return nil, err
	}
	return &Path{pair, r}, nil
}

// Close ends the path.
func (p *Path) Close() {
	p.Router.Close()
	p.Pair.Close()
}
