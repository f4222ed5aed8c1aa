package nfs3_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
)

// TestFileMode checks types and permissions between the protocol and package io/fs.
func TestFileMode(t *testing.T) {
	for want, a := range map[fs.FileMode]nfs3.Attr{
		0o644:                                {Type: nfs3.TypeRegular, Mode: 0o644},
		fs.ModeDir | fs.ModeSticky | 0o777:   {Type: nfs3.TypeDirectory, Mode: 0o1777},
		fs.ModeSetuid | 0o755:                {Type: nfs3.TypeRegular, Mode: 0o4755},
		fs.ModeSymlink | 0o777:               {Type: nfs3.TypeSymlink, Mode: 0o777},
		fs.ModeDevice | fs.ModeCharDevice:    {Type: nfs3.TypeChar},
		fs.ModeDevice | 0o600:                {Type: nfs3.TypeBlock, Mode: 0o600},
		fs.ModeNamedPipe | fs.ModeSetgid | 1: {Type: nfs3.TypeFIFO, Mode: 0o2001},
	} {
		if got := a.FileMode(); got != want || nfs3.ModeOf(want) != a.Mode {
			t.Errorf("%+v is %v, want %v, which is mode %o", a, got, want, nfs3.ModeOf(want))
		}
	}
}

// TestTimes checks that times before 1970 and after 2106 become the nearest that the protocol has.
func TestTimes(t *testing.T) {
	for in, want := range map[time.Time]nfs3.Time{
		time.Unix(5, 7):      {Seconds: 5, Nanoseconds: 7},
		time.Unix(-5, 7):     {},
		time.Unix(1<<33, 7):  {Seconds: 1<<32 - 1},
		time.Unix(1<<31, 99): {Seconds: 1 << 31, Nanoseconds: 99},
	} {
		if got := nfs3.TimeOf(in); got != want {
			t.Errorf("%v is %v, want %v", in, got, want)
		}
	}
	if a, b := (nfs3.Time{Seconds: 1, Nanoseconds: 2}), (nfs3.Time{Seconds: 1, Nanoseconds: 3}); !a.Before(b) || b.Before(a) || a.Before(a) || !a.Time().Equal(time.Unix(1, 2)) {
		t.Error("times are out of order")
	}
}
