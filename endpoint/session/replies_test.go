package session

import "testing"

// TestReplies checks that the newest reply of each kind waits, and no more than there are places for.
func TestReplies(t *testing.T) {
	var r Replies
	kinds := []Kind{Hello, Welcome, Confirm, Reject, Refused, Reset}
	for round := range Epoch(2) {
		for _, k := range kinds {
			r.Add(Reply{Frame: Frame{Kind: k, Sender: 10*round + Epoch(k)}, Brief: round == 1})
		}
	}
	if r.Len() != mostReplies {
		t.Fatalf("%d wait, want %d", r.Len(), mostReplies)
	}
	for i := range mostReplies {
		k := kinds[mostReplies-1-i]
		if x := r.Take(); x.Kind != k || x.Sender != 10+Epoch(k) || !x.Brief {
			t.Errorf("%+v, want the newest %v", x, k)
		}
	}
	r.Add(Reply{Frame: Frame{Kind: Hello}})
	if r.Clear(); r.Len() != 0 {
		t.Error("something is left")
	}
}
