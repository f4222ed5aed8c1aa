package session

import "testing"

// TestForeign checks that a frame counts as one of another session if it names neither the session nor an attempt, in whatever state.
func TestForeign(t *testing.T) {
	for _, row := range inputs {
		for s := Down; s < states; s++ {
			m := in(s)
			o := m.Receive(surroundings, &fixed{}, &row.f)
			want := false
			switch f := &row.f; f.Kind {
			case Confirm:
				want = o.Reply.Kind == Reject || s == Confirming && f.Sender != remote
			case Welcome:
				want = s != Asking || f.Receiver != local
			case Reject:
				want = s < Confirming || f.Receiver != remote
			case Bye:
				want = s < Confirming || f.Sender != remote
			case Refused:
				want = f.Receiver != local || s < Asking
			case Reset:
				want = s < Confirming || f.QuotedTag != ourTag || f.ID >= surroundings.Next && s == Up // else CONFIRM leaves
			}
			if o.Foreign != want {
				t.Errorf("%s in %v: foreign %v, want %v", row.name, s, o.Foreign, want)
			}
		}
	}
}
