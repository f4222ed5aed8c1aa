package rpcrdma

import (
	"bytes"
	"strings"
	"testing"
)

// TestFault checks that errors.As finds a Fault, and that it says what was wrong, where, and what is answered.
func TestFault(t *testing.T) {
	b := wire(0x11, 2, 32, 0, 0, 0, 7, 0, 0)
	f := refused(t, NewDecoder(DefaultLimits()), b)
	if f.At != 24 || f.Type != TypeMsg || f.XID != 0x11 || code(f) != "BAD_XDR" {
		t.Errorf("%+v", f)
	}
	for _, want := range []string{"xid 0x11", "neither 0 nor 1", "octet 24", "BAD_XDR"} {
		if !strings.Contains(f.Error(), want) {
			t.Errorf("%q does not say %q", f, want)
		}
	}
	h, is := f.Answer(Credit2(32, 1))
	if !is || !bytes.Equal(h.Append(nil), wire(0x11, 2, Credit2(32, 1), 4, 1, 2)) {
		t.Errorf("%v, %x", is, h.Append(nil))
	}
	f = refused(t, settled(Version1), []byte{1, 2, 3})
	if h, is := f.Answer(1); is || h.Type != 0 || !strings.Contains(f.Error(), "dropped") {
		t.Errorf("%v is answered by %+v", f, h)
	}
}

// TestStaleOctets checks that an answer has nothing of messages that came before: xid and version are those of the message
// (RPC2-081, RPC1-050).
// Attack P12 (SECURITY.md).
func TestStaleOctets(t *testing.T) {
	for _, version := range []uint32{Version1, Version2} {
		d := NewDecoder(DefaultLimits())
		good := wire(join(prefix(version, TypeMsg, 0), handle(version, 9), []uint32{1, 4, 9, 100, 0, 0, 0, 1, 1, 8, 8, 0, 8, 0, 1, 1, 7, 7, 0, 7})...)
		h, _ := taken(t, d, good)
		if len(h.Reads) != 1 || len(h.Writes) != 1 || !h.HasReply {
			t.Fatalf("%+v", h)
		}
		bad := wire(join([]uint32{0x22}, prefix(version, TypeMsg, 0)[1:], handle(version, 0), []uint32{3})...)
		f := refused(t, d, bad)
		answer, is := f.Answer(1)
		if !is || answer.XID != 0x22 || answer.Version != version || !answer.noLists() || answer.Report != (Report{Code: 2}) {
			t.Errorf("version %d: %+v", version, answer)
		}
		for n := range len(bad) {
			h.XID, h.HasReply = 0x11, true
			if _, err := d.Decode(bad[:n], &h); err == nil || !h.noLists() || h.InvHandle != 0 || h.XID == 0x11 {
				t.Errorf("version %d: %d octets, and the header has something of the one before: %+v", version, n, h)
			}
		}
	}
}
