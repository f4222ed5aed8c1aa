package dgrdma

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
)

// TestAddressOfALink checks that an address that needs an interface of this machine, and names none
// or one that is not here, is refused at once, whether it is of this side or a peer's.
func TestAddressOfALink(t *testing.T) {
	e, err := Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for ip, want := range map[string]string{
		"fe80::1":         "fe80::1 is an address of one link, and the interface that is on it is missing: name it behind a %, as in [fe80::1%eth0]",
		"fe80::1%nosuch0": "no interface nosuch0 here",
	} {
		peer := "ocpi-udp-rdma:[" + ip + "];7100;64.1.2"
		_, dialed := e.Dial(peer)
		opened, err := Open("udp:["+ip+"]", nil)
		if err == nil {
			opened.Close()
		}
		p, parsed := ParsePeer(peer)
		if parsed != nil {
			t.Fatal(parsed)
		}
		_, connected := e.Connect(p)
		for what, err := range map[string]error{"dial": dialed, "open": err, "connect": connected} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v", what, ip, err)
			}
		}
	}
	if _, err := e.Connect(Peer{ID: 9, Addr: transport.Addr{}}); err != nil && strings.Contains(err.Error(), "link") {
		t.Error(err)
	}
}
