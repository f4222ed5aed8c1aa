package opencpi

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/url"
)

func TestValidateAccepts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Descriptor)
	}{
		{"unchanged", func(*Descriptor) {}},
		{"producer", func(d *Descriptor) { d.Kind = KindProducer }},
		{"role-none", func(d *Descriptor) { d.Role = RoleNone }},
		{"no-endpoint", func(d *Descriptor) { d.Endpoint = "" }},
		{"all-options", func(d *Descriptor) { d.Options = math.MaxUint32 }},
		{"pitch-above-size", func(d *Descriptor) { d.Pitch = d.Size + 128 }},
		{"one-doorbell", func(d *Descriptor) { d.FullFlagPitch, d.EmptyFlagPitch, d.Buffers = 0, 0, 255 }},
		{"one-buffer-any-pitch", func(d *Descriptor) {
			d.Buffers, d.Pitch, d.FullFlagPitch, d.EmptyFlagPitch, d.MetaPitch = 1, 0, 3, math.MaxUint32, math.MaxUint32
		}},
		{"data-to-the-end", func(d *Descriptor) { d.DataAddr = 1<<32 - 3*2048 - 2048 }},
		{"all-memory", func(d *Descriptor) { d.Buffers, d.DataAddr, d.Size = 1, 1, math.MaxUint32 }},
		{"many-buffers", func(d *Descriptor) {
			d.Buffers, d.DataAddr, d.Pitch, d.Size = math.MaxUint32, 0, 1, 1
			d.MetaPitch, d.FullFlagPitch, d.EmptyFlagPitch = 0, 0, 0
			d.EmptyFlagSize = 4
		}},
		{"metadata-to-the-end", func(d *Descriptor) { d.MetaAddr = 1<<32 - 3*16 - 1 }},
		{"full-flags-to-the-end", func(d *Descriptor) { d.FullFlagAddr = 1<<32 - 3*80 - 4 }},
		{"empty-flags-to-the-end", func(d *Descriptor) { d.EmptyFlagAddr, d.EmptyFlagSize = 1<<32-3*8-4, 4 }},
		{"unused-flags", func(d *Descriptor) { d.EmptyFlagAddr, d.EmptyFlagSize, d.EmptyFlagPitch = 0, 0, 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := softwareConsumer
			c.change(&d)
			if err := d.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Descriptor)
		part   string
	}{
		{"kind-0", func(d *Descriptor) { d.Kind = 0 }, "kind is 0, expected 1 to 3"},
		{"kind-4", func(d *Descriptor) { d.Kind = 4 }, "kind is 4, expected 1 to 3"},
		{"kind-huge", func(d *Descriptor) { d.Kind = math.MaxUint32 }, "kind is 4294967295"},
		{"role-4", func(d *Descriptor) { d.Role = 4 }, "role is 4, expected 0 to 3, or 5"},
		{"role-6", func(d *Descriptor) { d.Role = 6 }, "role is 6"},
		{"role-huge", func(d *Descriptor) { d.Role = math.MaxUint32 }, "role is 4294967295"},
		{"no-buffers", func(d *Descriptor) { d.Buffers = 0 }, "buffers is 0, expected at least 1"},
		{"no-size", func(d *Descriptor) { d.Size = 0 }, "size is 0, expected at least 1"},
		{"pitch-0", func(d *Descriptor) { d.Pitch = 0 }, "pitch is 0, expected at least the size 2048 of one of the 4 buffers"},
		{"pitch-below-size", func(d *Descriptor) { d.Pitch = 2047 }, "pitch is 2047, expected at least the size 2048"},
		{"data-wraps", func(d *Descriptor) { d.DataAddr = 1<<32 - 4*2048 + 1 }, "data_addr is 0xffffe001: 4 buffers with pitch 2048 and size 2048 end at 0x100000001, expected at most 0x100000000"},
		{"data-size-wraps", func(d *Descriptor) { d.Buffers, d.DataAddr, d.Size = 1, 2, math.MaxUint32 }, "data_addr is 0x2"},
		{"metadata-wraps", func(d *Descriptor) { d.MetaAddr = 1<<32 - 3*16 }, "meta_addr is 0xffffffd0"},
		{"full-flags-wrap", func(d *Descriptor) { d.FullFlagAddr = 1<<32 - 3*80 }, "full_flag_addr is 0xffffff10"},
		{"full-flag-size-wraps", func(d *Descriptor) { d.FullFlagAddr, d.FullFlagSize = 1<<32-3*80-4, 5 }, "full_flag_addr is"},
		{"full-flag-address", func(d *Descriptor) { d.FullFlagAddr = 18 }, "full_flag_addr is 0x12, expected a multiple of 4"},
		{"full-flag-pitch", func(d *Descriptor) { d.FullFlagPitch = 82 }, "full_flag_pitch is 82, expected a multiple of 4"},
		{"empty-flags-wrap", func(d *Descriptor) { d.EmptyFlagAddr = 1<<32 - 3*8 }, "empty_flag_addr is 0xffffffe8"},
		{"empty-flag-address", func(d *Descriptor) { d.EmptyFlagAddr = 1 }, "empty_flag_addr is 0x1, expected a multiple of 4"},
		{"empty-flag-pitch", func(d *Descriptor) { d.EmptyFlagPitch = 1 }, "empty_flag_pitch is 1, expected a multiple of 4"},
		{"endpoint-long", func(d *Descriptor) { d.Endpoint = "ether:" + strings.Repeat("e", 250) }, "expected at most 255 bytes, not 256"},
		{"endpoint-nul", func(d *Descriptor) { d.Endpoint = "udp\x00" }, "expected no NUL"},
		{"endpoint-unknown", func(d *Descriptor) { d.Endpoint = "ocpi-pci:1" }, "endpoint: dgrdma: endpoint string \"ocpi-pci:1\": byte 0: expected "},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := softwareConsumer
			c.change(&d)
			err := d.Validate()
			if !errors.Is(err, ErrDescriptor) || !strings.HasPrefix(err.Error(), "opencpi: bad descriptor: ") || !strings.Contains(err.Error(), c.part) {
				t.Errorf("error %v, want one about %q", err, c.part)
			}
		})
	}
}

// The largest values of all must not wrap in the check against wrapping.
func TestValidateLargest(t *testing.T) {
	const most = math.MaxUint32
	d := softwareConsumer
	d.Buffers, d.DataAddr, d.Pitch, d.Size = most, most, most, most
	err := d.Validate()
	if err == nil || !strings.Contains(err.Error(), "end at 0xffffffff00000000,") {
		t.Error(err)
	}
}

func TestValidateKeepsEndpointError(t *testing.T) {
	d := softwareConsumer
	d.Endpoint = "udp:1.2.3.4:70000"
	var wrong *url.Error
	if err := d.Validate(); !errors.As(err, &wrong) || wrong.Offset != len("udp:1.2.3.4:") {
		t.Errorf("error %v", err)
	}
}
