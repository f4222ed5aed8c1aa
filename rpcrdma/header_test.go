package rpcrdma

import (
	"fmt"
	"testing"
)

// TestPeek checks that the four words with which each version begins are read by themselves, and not before all are
// there (RPC2-028, RPC1-003).
func TestPeek(t *testing.T) {
	b := wire(7, 77, 3, 4)
	if p, ok := Peek(b); !ok || p != (Prefix{7, 77, 3, TypeError}) {
		t.Errorf("%+v, %v", p, ok)
	}
	for n := range b {
		if p, ok := Peek(b[:n]); ok || p != (Prefix{}) {
			t.Errorf("of %d octets: %+v", n, p)
		}
	}
}

// TestErrVersOfEitherLayout checks that an ERR_VERS is read in both layouts, told apart by length, whatever its version word is
// (RPCN-02, RPCN-05, RPC1-003, RPC1-050).
func TestErrVersOfEitherLayout(t *testing.T) {
	response := uint32(FlagResponse)
	both, one, two := NewDecoder(DefaultLimits()), settled(Version1), settled(Version2)
	for _, vers := range []uint32{0, 1, 2, 3, 1 << 31} {
		for _, d := range []*Decoder{both, one, two} {
			h, _ := taken(t, d, wire(0x77, vers, 64, 4, 1, 1, 1))
			if want := (Report{Code: CodeVers, Refused: vers, Low: 1, High: 1}); h.Version != Version1 || h.XID != 0x77 || h.Report != want {
				t.Errorf("vers %d, 28 octets: %+v", vers, h)
			}
			h, _ = taken(t, d, wire(0x77, vers, 64, 4, response, 1, 2, 5))
			if want := (Report{Code: CodeVers, Refused: vers, Low: 2, High: 5}); h.Version != Version2 || h.Report != want {
				t.Errorf("vers %d, 32 octets: %+v", vers, h)
			}
		}
	}
	// These have the length of the other's layout, too, and are no ERR_VERS.
	for _, c := range []ErrorCode{CodeReadChunks, CodeWriteChunks, CodeSegments, CodeReplyResource} {
		h, _ := taken(t, both, wire(0x77, 2, 64, 4, response, uint32(c), 9))
		if h.Version != Version2 || h.Report.Code != c || h.Report.Max+h.Report.Needed != 9 {
			t.Errorf("%s: %+v", c.Name(Version2), h)
		}
	}
	if h, _ := taken(t, both, wire(0x77, 2, 64, 4, response, uint32(CodeWriteResource), 3, 9)); h.Report != (Report{Code: CodeWriteResource, Index: 3, Needed: 9}) {
		t.Errorf("WRITE_RESOURCE: %+v", h)
	}
	// A connection of version 1 knows nothing of flags: 6..7 is a range.
	if h, _ := taken(t, one, wire(0x77, 2, 64, 4, 1, 6, 7)); h.Report.Low != 6 || h.Report.High != 7 {
		t.Errorf("6..7 on version 1: %+v", h)
	}
	for name, b := range map[string][]byte{
		"a range that is none": wire(0x77, 1, 64, 4, 1, 2, 1), "and in the other layout": wire(0x77, 2, 64, 4, response, 1, 3, 2),
		"without RESPONSE": wire(0x77, 2, 64, 4, 0, 1, 1, 2), "without RESPONSE, of another version": wire(0x77, 3, 64, 4, 0, 1, 1, 2),
	} {
		if f := refused(t, both, b); !f.Dropped() {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// TestCreditWord checks the two numbers in version 2's word of credits (RPC2-012), and that version 1 has one.
func TestCreditWord(t *testing.T) {
	h := Header{Credit: Credit2(0xabcd, 0x0102)}
	if h.Credit != 0xabcd0102 || h.Maximum() != 0xabcd || h.Granted() != 0x0102 {
		t.Errorf("%#x: %#x, %#x", h.Credit, h.Maximum(), h.Granted())
	}
	for _, v := range []uint32{0, 1, 128, 1<<32 - 1} {
		got, _ := taken(t, settled(Version1), wire(7, 1, v, 0, 0, 0, 0))
		if got.Credit != v {
			t.Errorf("%d credits are read as %d", v, got.Credit)
		}
	}
}

// TestRefresh checks that a NOMSG without lists and with xid 0 is a refresh, and that one with another xid is an XDR error; other
// messages with xid 0 are what they are (RPC2-017, 067).
func TestRefresh(t *testing.T) {
	d := NewDecoder(DefaultLimits())
	h, _ := taken(t, d, wire(0, 2, Credit2(32, 7), 1, 0, 0, 0, 0, 0))
	if !h.IsRefresh() || h.Granted() != 7 {
		t.Errorf("%+v", h)
	}
	if n := h.Size(); n != 36 {
		t.Errorf("its length is %d", n)
	}
	if f := refused(t, d, wire(5, 2, 0, 1, 0, 0, 0, 0, 0)); code(f) != "BAD_XDR" || f.XID != 5 {
		t.Errorf("xid 5: %v", f)
	}
	if f := refused(t, d, wire(0, 1, 0, 1, 0, 0, 0)); code(f) != "ERR_CHUNK" {
		t.Errorf("version 1: %v", f)
	}
	if h, _ := taken(t, d, wire(0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0)); h.IsRefresh() {
		t.Error("a MSG is a refresh")
	}
	if h, _ := taken(t, d, wire(0, 2, 0, 1, 0, 0, 1, 0, 9, 100, 0, 0, 0, 0, 0)); h.IsRefresh() {
		t.Error("a Call in a chunk is a refresh")
	}
	for name, lists := range map[string][]uint32{"a Write list": {0, 1, 0, 0, 0}, "a Reply chunk": {0, 0, 1, 0}} {
		if f := refused(t, d, wire(join([]uint32{0, 2, 0, 1, 0, 0}, lists)...)); code(f) != "BAD_XDR" {
			t.Errorf("with %s: %v", name, f)
		}
	}
}

// TestNames checks how types are named.
func TestNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{"MSG": TypeMsg, "CONNPROP": TypeConnProp, "type 6": Type(6), "type 4294967295": Type(1<<32 - 1)} {
		if got.String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
