package rpc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// TestSys checks that credentials of AUTH_SYS are what they were, and that those that are longer than they may be are cut
// where they are made (ONC-005).
func TestSys(t *testing.T) {
	want := &Sys{Stamp: 1, Machine: "pluto", UID: 1000, GID: 100, GIDs: []uint32{4, 24, 27}}
	got, err := want.Auth().Sys()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	long := &Sys{Machine: strings.Repeat("x", 300), GIDs: make([]uint32, 30)}
	got, err = long.Auth().Sys()
	if err != nil || len(got.Machine) != 255 || len(got.GIDs) != 16 {
		t.Errorf("%+v, %v", got, err)
	}
	var auth *AuthError
	if _, err := None.Sys(); !errors.As(err, &auth) || auth.Status != Rejected {
		t.Errorf("AUTH_NONE as AUTH_SYS: %v", err)
	}
	if _, err := (Auth{FlavorSys, []byte{1, 2, 3}}).Sys(); !errors.As(err, &auth) || auth.Status != BadCredential {
		t.Errorf("three octets: %v", err)
	}
}

// TestSysBounds checks that a credential of AUTH_SYS has a machine name of at most 255 octets, at most 16 groups, and nothing after them, and that both ways to look
// at it agree (ONC-005, ONC-008).
func TestSysBounds(t *testing.T) {
	for _, c := range []struct {
		machine, groups, after int
		valid                  bool
	}{
		{0, 0, 0, true}, {255, 0, 0, true}, {256, 0, 0, false}, {257, 0, 0, false}, {300, 0, 0, false},
		{0, 15, 0, true}, {0, 16, 0, true}, {0, 17, 0, false}, {0, 32, 0, false}, {255, 16, 0, true}, {255, 17, 0, false},
		{5, 2, 1, false}, {5, 2, 4, false}, {5, 2, -1, false}, {5, 2, -4, false}, {0, 0, -4, false},
	} {
		s := Sys{Stamp: 1, Machine: strings.Repeat("x", c.machine), UID: 2, GID: 3, GIDs: make([]uint32, c.groups)}
		var e xdr.Encoder
		s.MarshalXDR(&e)
		body := e.Bytes()
		if c.after < 0 {
			body = body[:len(body)+c.after]
		} else {
			body = append(body, make([]byte, c.after)...)
		}
		got, err := (Auth{FlavorSys, body}).Sys()
		if (err == nil) != c.valid || validSys(body) != c.valid || c.valid && (got.Machine != s.Machine || len(got.GIDs) != c.groups) {
			t.Errorf("a name of %d octets, %d groups, %d octets after them: %+v, %v; valid by its form: %v", c.machine, c.groups, c.after, got, err, validSys(body))
		}
	}
}

// TestSysIsTakenAgain checks that a Sys that is used again is that of the last credential alone.
func TestSysIsTakenAgain(t *testing.T) {
	var got Sys
	for _, want := range []*Sys{
		{Stamp: 1, Machine: "pluto", UID: 2, GID: 3, GIDs: []uint32{4, 5, 6}},
		{Stamp: 1, Machine: "pluto", UID: 2, GID: 3, GIDs: []uint32{4, 5, 6}},
		{Stamp: 7, Machine: "mars", GIDs: []uint32{8}},
		{Stamp: 9, GIDs: []uint32{}},
	} {
		if err := got.Take(want.Auth()); err != nil || !reflect.DeepEqual(&got, want) {
			t.Errorf("%+v, want %+v: %v", got, *want, err)
		}
	}
	again := (&Sys{Machine: "pluto", GIDs: []uint32{1, 2, 3}}).Auth()
	if n := testing.AllocsPerRun(100, func() { got.Take(again) }); n != 0 {
		t.Errorf("the same user again takes memory %v times", n)
	}
}

// TestProcessSys checks that user and groups of a process are those that the system says, also where it has several groups, as root can have them.
func TestProcessSys(t *testing.T) {
	const groups = "RPC_TEST_GROUPS"
	got := ProcessSys()
	if machine, _ := os.Hostname(); got.Machine != machine || got.UID != uint32(os.Geteuid()) || got.GID != uint32(os.Getegid()) {
		t.Errorf("%+v", got)
	}
	if want := os.Getenv(groups); want != "" {
		if fmt.Sprint(got.GIDs) != want {
			t.Errorf("groups %v, want %s", got.GIDs, want)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can have a process with other groups")
	}
	child := exec.Command(os.Args[0], "-test.run=^TestProcessSys$")
	child.Env = append(os.Environ(), groups+"=[5 77 1000]")
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{5, 77, 1000}}}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// FuzzAuth checks that the form of a credential is judged without decoding it as by decoding it.
func FuzzAuth(f *testing.F) {
	f.Add((&Sys{Machine: "pluto", GIDs: []uint32{1, 2}}).Auth().Body)
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		a := Auth{FlavorSys, body}
		s, err := a.Sys()
		if (err == nil) != validSys(body) {
			t.Fatalf("%x: %v", body, err)
		}
		if err != nil {
			return
		}
		if len(s.Machine) > maxMachine || len(s.GIDs) > maxGIDs {
			t.Fatalf("%+v", s)
		}
		var d xdr.Decoder
		d.Reset(s.Auth().Body, nil)
		var again Sys
		again.UnmarshalXDR(&d)
		if d.Done() != nil || again.Machine != s.Machine || len(again.GIDs) != len(s.GIDs) {
			t.Fatalf("%+v became %+v", s, again)
		}
	})
}
