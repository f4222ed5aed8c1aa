package rpc

import (
	"errors"
	"reflect"
	"strings"
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
