package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// words returns 32-bit words in XDR.
func words(w ...uint32) (b []byte) {
	for _, v := range w {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// TestCallHeader checks the header of a call, octet by octet, and its length without a credential and with one of AUTH_SYS
// (ONC-001, ONC-006).
func TestCallHeader(t *testing.T) {
	sys := (&Sys{Stamp: 7, Machine: "siw3", UID: 1, GID: 2, GIDs: []uint32{3, 4}}).Auth()
	for _, c := range []struct {
		auth   Auth
		length int
		want   []byte
	}{
		{None, 40, words(9, 0, 2, 100003, 3, 6, 0, 0, 0, 0)},
		{sys, 40 + 20 + 4 + 2*4, append(append(words(9, 0, 2, 100003, 3, 6, 1, 32, 7, 4), "siw3"...), words(1, 2, 2, 3, 4, 0, 0)...)},
	} {
		h := callHeader{9, 100003, 3, 6, c.auth, None}
		var e xdr.Encoder
		h.append(&e)
		if !bytes.Equal(e.Bytes(), c.want) || len(c.want) != c.length {
			t.Errorf("%v: %x, want %x of %d octets", c.auth.Flavor, e.Bytes(), c.want, c.length)
		}
		var d xdr.Decoder
		d.Reset(e.Bytes(), nil)
		var got callHeader
		answer, ok := got.take(&d)
		if !ok || answer.status != statusSuccess || answer.xid != 9 || got.program != 100003 || got.version != 3 || got.procedure != 6 || !bytes.Equal(got.credential.Body, c.auth.Body) {
			t.Errorf("%v: %+v, %+v, %v", c.auth.Flavor, got, answer, ok)
		}
	}
}

// TestCallForms checks how a call is answered by its header alone, in any program: a wrong version of RPC, credentials and
// verifiers that are malformed or longer than they may be; and which messages are no calls (ONC-001, ONC-002, ONC-005, ONC-008).
// Attack P14 (SECURITY.md).
func TestCallForms(t *testing.T) {
	begin := words(1, 0, 2, 3, 4, 5)
	with := func(w ...uint32) []byte { return append(bytes.Clone(begin), words(w...)...) }
	seventeen := append(words(1, 20+17*4, 0, 0, 0, 0, 17), make([]byte, 17*4)...)
	for _, c := range []struct {
		name string
		b    []byte
		ok   bool
		want replyHeader
	}{
		{"good", with(0, 0, 0, 0), true, replyHeader{}},
		{"octets follow", with(0, 0, 0, 0, 1, 2, 3), true, replyHeader{}},
		{"empty", nil, false, replyHeader{}},
		{"half a word", []byte{0, 0, 0}, false, replyHeader{}},
		{"XID alone", words(1), false, replyHeader{}},
		{"a reply", words(1, 1, 0, 0, 0, 0), false, replyHeader{}},
		{"an unknown kind", words(1, 2, 2, 3, 4, 5, 0, 0, 0, 0), false, replyHeader{}},
		{"version 1", words(1, 0, 1), true, replyHeader{status: statusVersion, low: 2, high: 2}},
		{"version 3", words(1, 0, 3, 3, 4, 5, 0, 0, 0, 0), true, replyHeader{status: statusVersion, low: 2, high: 2}},
		{"no procedure", words(1, 0, 2, 3, 4), false, replyHeader{}},
		{"no credential", begin, true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"AUTH_NONE with a body", with(0, 4, 9, 0, 0), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"AUTH_NONE with an octet", with(0, 1, 0, 0, 0), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"a credential of 401 octets", append(with(1, 401), make([]byte, 420)...), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"a credential of 400 octets that is unknown", append(with(9, 400), make([]byte, 408)...), true, replyHeader{}},
		{"a credential of 4 GiB", with(1, 0xffffffff), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"a credential that is cut", with(1, 20, 0), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"17 groups", append(append(bytes.Clone(begin), seventeen...), words(0, 0)...), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"2^30 groups", with(1, 20, 0, 0, 0, 0, 1<<30, 0, 0), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"AUTH_SYS and trailing octets", with(1, 24, 0, 0, 0, 0, 0, 0, 0, 0), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"AUTH_SYS", with(1, 20, 0, 0, 0, 0, 0, 0, 0), true, replyHeader{}},
		{"a machine name of 256", append(append(with(1, 20+256, 0, 256), make([]byte, 256+12)...), words(0, 0)...), true, replyHeader{status: statusAuth, auth: BadCredential}},
		{"no verifier", with(0, 0), true, replyHeader{status: statusAuth, auth: BadVerifier}},
		{"a malformed credential, and no verifier", with(1, 4, 0), true, replyHeader{status: statusAuth, auth: BadVerifier}},
		{"a verifier of 4 GiB", with(0, 0, 0, 0xfffffffd), true, replyHeader{status: statusAuth, auth: BadVerifier}},
		{"a verifier of one octet", with(0, 0, 0, 1, 0), true, replyHeader{status: statusAuth, auth: BadVerifier}},
		{"an unknown verifier", with(0, 0, 9, 0), true, replyHeader{status: statusAuth, auth: BadVerifier}},
		{"a verifier with AUTH_SYS", with(1, 20, 0, 0, 0, 0, 0, 1, 0), true, replyHeader{status: statusAuth, auth: BadVerifier}},
	} {
		var d xdr.Decoder
		d.Reset(c.b, nil)
		var h callHeader
		got, ok := h.take(&d)
		if c.want.xid = got.xid; ok != c.ok || ok && (got != c.want || got.xid != 1) {
			t.Errorf("%s: %+v %v, want %+v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// TestHeadOfACallThatIsTooLong checks what is known of a call of which the head alone is there, wherever it is cut: it is a call if its second word says so, and what
// has not come is 0 (RPC2-104).
func TestHeadOfACallThatIsTooLong(t *testing.T) {
	whole := words(1, 0, 2, 3, 4, 5, 6)
	for n := range len(whole) + 1 {
		var d xdr.Decoder
		d.Reset(whole[:n], nil)
		var h callHeader
		answer, ok := h.takeTooLong(&d)
		word := func(i int, v uint32) uint32 {
			if n < 4*(i+1) {
				return 0
			}
			return v
		}
		want := callHeader{xid: word(0, 1), program: word(3, 3), version: word(4, 4), procedure: word(5, 5)}
		if ok != (n >= 8) || !reflect.DeepEqual(h, want) || answer != (replyHeader{xid: want.xid, status: statusSystem}) {
			t.Errorf("%d octets: %+v, %+v, %v", n, h, answer, ok)
		}
	}
	for _, b := range [][]byte{words(1, 1, 2, 3, 4, 5), words(1, 2, 2, 3, 4, 5), words(1, 1)} {
		var d xdr.Decoder
		d.Reset(b, nil)
		if _, ok := new(callHeader).takeTooLong(&d); ok {
			t.Errorf("%x is taken for a call", b)
		}
	}
}

// TestReplyHeader checks all states of a reply, octet by octet, and the errors that they are for a caller (ONC-002, ONC-006).
func TestReplyHeader(t *testing.T) {
	for _, c := range []struct {
		h    replyHeader
		want []byte
		err  error
	}{
		{replyHeader{xid: 5}, words(5, 1, 0, 0, 0, 0), nil},
		{replyHeader{xid: 5, status: statusProgramUnavailable}, words(5, 1, 0, 0, 0, 1), &ProgramError{Unavailable: true}},
		{replyHeader{xid: 5, status: statusProgramMismatch, low: 3, high: 4}, words(5, 1, 0, 0, 0, 2, 3, 4), &ProgramError{Low: 3, High: 4}},
		{replyHeader{xid: 5, status: statusProcedureUnavailable}, words(5, 1, 0, 0, 0, 3), ErrProcedureUnavailable},
		{replyHeader{xid: 5, status: statusGarbageArgs}, words(5, 1, 0, 0, 0, 4), ErrGarbageArgs},
		{replyHeader{xid: 5, status: statusSystem}, words(5, 1, 0, 0, 0, 5), ErrSystem},
		{replyHeader{xid: 5, status: statusVersion, low: 2, high: 2}, words(5, 1, 1, 0, 2, 2), &VersionError{2, 2}},
		{replyHeader{xid: 5, status: statusAuth, auth: TooWeak}, words(5, 1, 1, 1, 5), &AuthError{TooWeak}},
	} {
		var e xdr.Encoder
		c.h.append(&e)
		if !bytes.Equal(e.Bytes(), c.want) {
			t.Errorf("%+v: %x, want %x", c.h, e.Bytes(), c.want)
		}
		var d xdr.Decoder
		d.Reset(c.want, nil)
		var got replyHeader
		if err := got.take(&d); err != nil || got != c.h || d.Offset() != len(c.want) {
			t.Errorf("%x: %+v, %v", c.want, got, err)
		}
		err := got.err()
		if (err == nil) != (c.err == nil) || err != nil && err.Error() != c.err.Error() {
			t.Errorf("%x: %v, want %v", c.want, err, c.err)
		}
		for n := range len(c.want) {
			d.Reset(c.want[:n], nil)
			if err := got.take(&d); !errors.Is(err, ErrReply) || !errors.Is(err, xdr.ErrInvalid) {
				t.Errorf("%x: %v", c.want[:n], err)
			}
		}
	}
}

// TestReplyForms checks that messages that are no replies of ONC RPC are told apart, and that a verifier is skipped (ONC-002, ONC-008).
func TestReplyForms(t *testing.T) {
	for name, b := range map[string][]byte{
		"a call":               words(5, 0, 0, 0, 0, 0),
		"reply_stat 2":         words(5, 1, 2, 0, 0, 0),
		"accept_stat 6":        words(5, 1, 0, 0, 0, 6),
		"accept_stat 2^32-1":   words(5, 1, 0, 0, 0, 0xffffffff),
		"reject_stat 2":        words(5, 1, 1, 2, 0, 0),
		"reject_stat 2^32-16":  words(5, 1, 1, 0xfffffff0, 0, 0), // with denied added it would be 0
		"a verifier of 401":    append(words(5, 1, 0, 0, 401), make([]byte, 408)...),
		"a verifier of 4 GiB":  words(5, 1, 0, 0, 0xffffffff, 0),
		"a verifier that cuts": words(5, 1, 0, 0, 8, 0),
	} {
		var d xdr.Decoder
		d.Reset(b, nil)
		var h replyHeader
		if err := h.take(&d); !errors.Is(err, ErrReply) {
			t.Errorf("%s: %v, %+v", name, err, h)
		}
	}
	for b, want := range map[string]string{
		string(words(5, 1, 1, 2, 0, 0)):  "denied with status 2",
		string(words(5, 1, 1, 77, 0, 0)): "denied with status 77",
		string(words(5, 1, 0, 0, 0, 6)):  "accepted with status 6",
		string(words(5, 0, 0, 0, 0, 0)):  "a message of kind 0",
	} {
		var d xdr.Decoder
		d.Reset([]byte(b), nil)
		if err := new(replyHeader).take(&d); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%x: %v, want %s", b, err, want)
		}
	}
	var d xdr.Decoder
	d.Reset(words(5, 1, 0, 6, 8, 1, 2, 0, 77), nil)
	var h replyHeader
	if err := h.take(&d); err != nil || h.status != statusSuccess || d.Uint32() != 77 {
		t.Errorf("with a verifier: %v", err)
	}
}

func FuzzCall(f *testing.F) {
	f.Add(words(1, 0, 2, 3, 4, 5, 0, 0, 0, 0))
	f.Add(words(1, 0, 2, 3, 4, 5, 1, 20, 0, 0, 0, 0, 0, 0, 0))
	f.Add(words(1, 0, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d xdr.Decoder
		d.Reset(b, nil)
		var h callHeader
		answer, ok := h.take(&d)
		if !ok || answer.status != statusSuccess {
			return
		}
		var e xdr.Encoder
		h.append(&e)
		again := e.Bytes()
		d.Reset(again, nil)
		var h2 callHeader
		if answer2, ok := h2.take(&d); !ok || answer2 != answer || h2.program != h.program || h2.procedure != h.procedure || !bytes.Equal(h2.credential.Body, h.credential.Body) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

func FuzzReply(f *testing.F) {
	f.Add(words(5, 1, 0, 0, 0, 0))
	f.Add(words(5, 1, 0, 0, 0, 2, 3, 4))
	f.Add(words(5, 1, 1, 0, 2, 2))
	f.Add(words(5, 1, 1, 1, 5))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d xdr.Decoder
		d.Reset(b, nil)
		var h replyHeader
		err := h.take(&d)
		if err != nil {
			if !errors.Is(err, ErrReply) {
				t.Fatal(err)
			}
			return
		}
		if (h.err() == nil) != (h.status == statusSuccess) {
			t.Fatalf("%+v is %v", h, h.err())
		}
		var e xdr.Encoder
		h.append(&e)
		d.Reset(e.Bytes(), nil)
		var h2 replyHeader
		if err := h2.take(&d); err != nil || h2 != h {
			t.Fatalf("%+v became %+v, %v", h, h2, err)
		}
	})
}
