package rpcrdma

import (
	"bytes"
	"testing"
)

// TestShortMessages checks that a message shorter than the first words is dropped: 20 octets, or 16 where the connection has settled on
// version 1 (RPC2-028, 080; RPC1-001).
func TestShortMessages(t *testing.T) {
	for _, c := range []struct {
		name  string
		d     *Decoder
		least int
	}{{"any version", NewDecoder(DefaultLimits()), 20}, {"version 1", settled(Version1), 16}, {"version 2", settled(Version2), 20}} {
		for _, vers := range []uint32{0, 1, 2, 3} {
			b := wire(0x11, vers, 32, 0, 0, 0, 0, 0, 0)
			for n := range c.least {
				if f := refused(t, c.d, b[:n]); !f.Dropped() || f.XID != 0 {
					t.Errorf("%s, vers %d, %d octets: %v", c.name, vers, n, f)
				}
			}
			if f := refused(t, c.d, b[:c.least]); f.Dropped() || f.XID != 0x11 {
				t.Errorf("%s, vers %d, %d octets: %v", c.name, vers, c.least, f)
			}
		}
	}
}

// TestVersions checks what is answered to a version that is not spoken: ERR_VERS with xid and version of the message, in version 1's
// layout unless the connection has settled on version 2 (RPC2-027, 081; RPC1-050; RPCN-06).
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		d         *Decoder
		low, high uint32
		vers      []uint32
		layout    uint32
	}{
		{NewDecoder(DefaultLimits()), 1, 2, []uint32{0, 3, 4, 1<<32 - 1}, Version1},
		{settled(Version1), 1, 1, []uint32{0, 2, 3, 1<<32 - 1}, Version1},
		{settled(Version2), 2, 2, []uint32{0, 1, 3, 1<<32 - 1}, Version2},
	} {
		for _, vers := range c.vers {
			for _, typ := range []Type{TypeMsg, TypeNoMsg, TypeConnProp, 9} {
				f := refused(t, c.d, wire(0x11, vers, 32, uint32(typ), 0, 0, 0, 0, 0))
				want := Report{Code: CodeVers, Refused: vers, Low: c.low, High: c.high}
				if f.Report != want || f.Version != c.layout || f.At != wordSize || f.EitherSide() {
					t.Fatalf("vers %d, type %v: %v, %+v", vers, typ, f, f.Report)
				}
				h, is := f.Answer(64)
				if !is || h.Flags != Flags(c.layout-Version1) {
					t.Fatalf("answered by %+v", h)
				}
				words := []uint32{0x11, vers, 64, 4, 1, want.Low, want.High}
				if c.layout == Version2 {
					words = []uint32{0x11, vers, 64, 4, 1, 1, want.Low, want.High}
				}
				if b := h.Append(nil); !bytes.Equal(b, wire(words...)) {
					t.Errorf("vers %d is answered by %x, want %x", vers, b, wire(words...))
				}
			}
			if f := refused(t, c.d, wire(0x11, vers, 32, uint32(TypeError), 1, 1)); !f.Dropped() {
				t.Errorf("an ERROR of version %d is answered: %v", vers, f)
			}
		}
	}
}

// TestTypes checks what is answered to types that a version does not have: either side says INVAL_HTYPE, a Responder of version 1 ERR_CHUNK, and
// DONE is dropped (RPC2-065, 090; RPC1-004).
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		version uint32
		types   []Type
		want    string
		either  bool
	}{
		{Version2, []Type{TypeMsgP, TypeDone, 6, 7, 13, 1 << 31, 1<<32 - 1}, "INVAL_HTYPE", true},
		{Version1, []Type{TypeMsgP, TypeConnProp, 6, 9, 1 << 31, 1<<32 - 1}, "ERR_CHUNK", false},
		{Version1, []Type{TypeDone}, "dropped", false},
	} {
		for _, typ := range c.types {
			for _, flags := range []Flags{0, FlagMore, FlagTPMore, 1<<32 - 1} {
				b := wire(join(prefix(c.version, typ, flags), make([]uint32, 4))...)
				f := refused(t, NewDecoder(DefaultLimits()), b)
				if code(f) != c.want || f.EitherSide() != c.either || f.XID != 0x11 || f.At != 12 {
					t.Errorf("version %d, %v: %v, by either side: %v", c.version, typ, f, f.EitherSide())
				}
			}
		}
	}
}

// TestFlags checks each rule about flags that one message shows (RPC2-053 to 055, 057, 059, 090).
func TestFlags(t *testing.T) {
	lists := make([]uint32, 4)
	call := []uint32{0, 1, 0, 5, 100, 0, 0, 0, 0, 0} // a Read chunk at Position 0
	response, more, tpmore := FlagResponse, FlagMore, FlagTPMore
	for _, c := range []struct {
		name   string
		typ    Type
		flags  Flags
		body   []uint32
		want   string // "" if it is taken
		either bool
	}{
		{"a part of a Call", TypeMsg, more, lists, "", false},
		{"a part of a Reply", TypeMsg, more | response, lists, "", false},
		{"unknown flags", TypeMsg, 0xfffffff8, lists, "", false},
		{"properties", TypeConnProp, 0, lists[:1], "", false},
		{"properties that go on", TypeConnProp, tpmore, lists[:1], "", false},
		{"a part of a Call with payload", TypeMsg, more, []uint32{0, 0, 0, 0, 1<<32 - 1}, "", false},
		{"properties with MORE", TypeConnProp, more, []uint32{1, 77, 4, 4}, "", false},
		{"TPMORE in MSG", TypeMsg, tpmore, lists, "INVAL_HTYPE", true},
		{"TPMORE and MORE in MSG", TypeMsg, tpmore | more, lists, "INVAL_HTYPE", true},
		{"TPMORE in NOMSG", TypeNoMsg, tpmore, call, "INVAL_HTYPE", true},
		{"TPMORE in ERROR", TypeError, tpmore | response, []uint32{2}, "dropped", false},
		{"MORE in NOMSG", TypeNoMsg, more, call, "INVAL_CONT", false},
		{"MORE in a refresh", TypeNoMsg, more, lists, "INVAL_CONT", false},
		{"MORE in ERROR", TypeError, more | response, []uint32{2}, "dropped", false},
		{"ERROR without RESPONSE", TypeError, 0, []uint32{2}, "dropped", false},
		{"MORE with a handle", TypeMsg, more, []uint32{9, 0, 0, 0}, "INVAL_CONT", false},
		{"MORE with a Read list", TypeMsg, more, []uint32{0, 1, 4, 9, 1, 0, 0, 0, 0, 0}, "INVAL_CONT", false},
		{"MORE with a Write list", TypeMsg, more, []uint32{0, 0, 1, 0, 0, 0}, "INVAL_CONT", false},
		{"MORE with a Reply chunk", TypeMsg, more, []uint32{0, 0, 0, 1, 0}, "INVAL_CONT", false},
		{"MORE with a word that is none of a list", TypeMsg, more, []uint32{0, 0, 7, 0}, "INVAL_CONT", false},
		{"MORE without lists", TypeMsg, more, lists[:3], "BAD_XDR", false},
	} {
		b := wire(join(prefix(Version2, c.typ, c.flags), c.body)...)
		if c.want == "" {
			if h, _ := taken(t, settled(Version2), b); h.Flags != c.flags&knownFlags {
				t.Errorf("%s: flags %#x", c.name, h.Flags)
			} else if again := h.Append(nil); word(again, 16) != uint32(c.flags&7) {
				t.Errorf("%s: flags %#x are sent", c.name, word(again, 16))
			}
			continue
		}
		if f := refused(t, settled(Version2), b); code(f) != c.want || f.EitherSide() != c.either {
			t.Errorf("%s: %v, by either side: %v", c.name, f, f.EitherSide())
		}
	}
}
