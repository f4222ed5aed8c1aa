package admission_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/endpoint/admission"
)

// TestPolicy checks that sources are accepted while any are or a service wants them, that each Welcome is taken back by itself, that only
// AcceptAny lets them write, and that a change is reported.
func TestPolicy(t *testing.T) {
	var p admission.Policy
	for i, x := range []struct {
		do                       func() bool
		changed, accepts, writes bool
	}{
		{func() bool { return p.Welcome(true) }, true, true, false},
		{func() bool { return p.Welcome(true) }, false, true, false},
		{func() bool { return p.AcceptAny(true) }, false, true, true},
		{func() bool { return p.Welcome(false) }, false, true, true},
		{func() bool { return p.AcceptAny(false) }, false, true, false},
		{func() bool { return p.Welcome(false) }, true, false, false},
		{func() bool { return p.AcceptAny(true) }, true, true, true},
		{func() bool { return p.AcceptAny(true) }, false, true, true},
		{func() bool { return p.AcceptAny(false) }, true, false, false},
	} {
		if changed := x.do(); changed != x.changed || p.Accepts() != x.accepts || p.MayWrite() != x.writes {
			t.Errorf("step %d: changed %v, accepts %v, may write %v; want %v, %v, %v", i, changed, p.Accepts(), p.MayWrite(), x.changed, x.accepts, x.writes)
		}
	}
}
