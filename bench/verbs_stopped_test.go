package bench

import (
	"testing"
	"time"
)

// TestOneselfStopped: who was stopped does not take the other side for silent as soon as it goes on, but when it has looked again.
func TestOneselfStopped(t *testing.T) {
	const giveUp = 10 * time.Second
	l := &controlLine{opened: time.Now().Add(-time.Minute)}
	for _, late := range []attention{{at: time.Now().Add(-30 * time.Second)}, {at: time.Now().Add(-30 * time.Second), late: true}} {
		looked := late
		if silent, over := l.fellSilent(giveUp, &looked); over != late.late || silent < time.Minute {
			t.Errorf("%+v: over %v, silent for %v", late, over, silent)
		}
		if silent, over := l.fellSilent(giveUp, &looked); !over || silent < time.Minute {
			t.Errorf("%+v: a look later: over %v, silent for %v", late, over, silent)
		}
	}
	l.heard.Store(l.now())
	looked := attention{at: time.Now()}
	if silent, over := l.fellSilent(giveUp, &looked); over || silent > giveUp/2 {
		t.Errorf("who was heard just now has been silent for %v: %v", silent, over)
	}
}
