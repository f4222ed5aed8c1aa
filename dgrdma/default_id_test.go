package dgrdma

import (
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestUsualID checks that an endpoint that is given a port and no id has the same string after a
// restart, another one another id, and that none has one that C++ drivers need.
func TestUsualID(t *testing.T) {
	opened := func(s string) (EndpointID, string) {
		t.Helper()
		e, err := Open(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		return e.ID(), e.URL()
	}
	port := fixture.FreePort(t)
	for _, form := range []string{"udp:127.0.0.1:%d", "udp:%d", "udp:[::1]:%d", "udp:127.0.0.1:%d?max=9", "udp:127.0.0.1:%d?max=1"} {
		s := fmt.Sprintf(form, port)
		_, before := opened(s)
		if _, after := opened(s); after != before {
			t.Errorf("%s was %s and is %s", s, before, after)
		}
	}
	four, _ := opened(fmt.Sprintf("udp:127.0.0.1:%d", port))
	if six, _ := opened(fmt.Sprintf("udp:[::1]:%d", port)); six == four {
		t.Errorf("both have the id %d", four)
	}
	different := map[EndpointID]bool{}
	for range 100 {
		id, _ := opened("udp:127.0.0.1")
		if different[id] = true; id < 10 {
			t.Errorf("id %d", id)
		}
	}
	if len(different) < 90 {
		t.Errorf("of 100 without a port %d differ", len(different))
	}
}
