package opencpi

import (
	"errors"
	"math"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// host returns a host and a connection of its endpoint to one more.
func host(t *testing.T) (*link.Host, *dgrdma.Conn) {
	t.Helper()
	var hosts [2]*link.Host
	for i := range hosts {
		h, err := link.Open("udp:127.0.0.1", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		hosts[i] = h
	}
	c, err := hosts[0].Endpoint().Dial(hosts[1].URL())
	if err != nil {
		t.Fatal(err)
	}
	return hosts[0], c
}

// TestOfferedDescriptor: buffers lie as OpenCPI's own consumers have them, in whole
// words, and what is offered is what Validate accepts.
func TestOfferedDescriptor(t *testing.T) {
	h, c := host(t)
	_, d, err := Offer(h, c, &link.Options{Buffers: 3, Size: 13})
	if err != nil {
		t.Fatal(err)
	}
	want := Descriptor{
		Kind: KindConsumer, Role: RoleActiveFlowControl, Options: OptionActiveFlowControl | OptionFlagIsMeta,
		Buffers: 3, DataAddr: d.DataAddr, Pitch: 64, Size: 16,
		FullFlagAddr: d.DataAddr + 3*64, FullFlagSize: 4, FullFlagPitch: 80, FullFlagValue: 1, Endpoint: h.URL(),
	}
	if d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}

// TestRefusedDescriptors: no link is made with what could not work, and the error is
// about the descriptor.
func TestRefusedDescriptors(t *testing.T) {
	h, c := host(t)
	good := Descriptor{Kind: KindConsumer, Role: RoleActiveFlowControl, Options: OptionFlagIsMeta, Buffers: 2, Size: 64, Pitch: 64, FullFlagAddr: 1 << 12, FullFlagPitch: 4}
	for name, change := range map[string]func(*Descriptor){
		"a producer's":      func(d *Descriptor) { d.Kind = KindProducer },
		"no kind":           func(d *Descriptor) { d.Kind = 0 },
		"too many buffers":  func(d *Descriptor) { d.Buffers = 1<<16 + 1 },
		"beyond the memory": func(d *Descriptor) { d.DataAddr = math.MaxUint32 - 100 },
		"odd flags":         func(d *Descriptor) { d.FullFlagAddr++ },
	} {
		d := good
		change(&d)
		if l, _, err := Attach(h, c, d, nil); l != nil || !errors.Is(err, ErrDescriptor) {
			t.Errorf("%s: %v", name, err)
		}
	}
	out, answer, err := Attach(h, c, good, nil)
	if err != nil {
		t.Fatal(err)
	}
	in, _, err := Offer(h, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"a consumer's":        Connect(in, good),
		"odd flags":           Connect(in, Descriptor{Kind: KindProducer, EmptyFlagAddr: 2}),
		"flags at the end":    Connect(in, Descriptor{Kind: KindProducer, EmptyFlagAddr: math.MaxUint32 - 3, EmptyFlagPitch: 4}),
		"a link that sends":   Connect(out, answer),
		"good, and once more": errors.Join(Connect(in, answer), Connect(in, answer)),
	} {
		if !errors.Is(err, ErrDescriptor) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
