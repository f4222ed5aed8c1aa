package capture

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Interfaces are renamed, go while packets of theirs wait, and come with the number of
// another one.
func TestInterfacesThatPacketsPassed(t *testing.T) {
	names := map[int]string{1: "lo", 5: "eth0"}
	asked := 0
	p := passed{ask: func(index int) string { asked++; return names[index] }}
	start := time.Date(2021, 3, 4, 5, 6, 7, 0, time.UTC)
	at := func(after time.Duration, index, link int, want string) {
		t.Helper()
		number, name := p.at(index, link, start.Add(after))
		if got := fmt.Sprintf("%d %s", number, name); got != want {
			t.Errorf("%v, index %d: %s, want %s", after, index, got, want)
		}
	}
	at(0, 5, linkEthernet, "0 eth0")
	at(1, 1, linkEthernet, "1 lo")
	at(namesLast-1, 5, linkEthernet, "0 eth0")
	if asked != 2 {
		t.Errorf("asked %d times for two names that are new", asked)
	}
	names[5] = "lan"
	at(namesLast, 5, linkEthernet, "2 lan")
	delete(names, 5)
	at(3*namesLast, 5, linkEthernet, "2 lan")
	names[5] = "tun0"
	at(3*namesLast+1, 5, linkRaw, "3 tun0")
	at(3*namesLast+2, 9, linkRaw, "4 ")
	at(0, 5, linkRaw, "3 tun0") // clocks are set back
	if got := fmt.Sprint(p.list); got != "[{eth0 1} {lo 1} {lan 1} {tun0 101} { 101}]" {
		t.Errorf("interfaces %s", got)
	}
}

// A host where interfaces come and go all the time takes no more memory for that.
func TestInterfacesAreForgotten(t *testing.T) {
	p := passed{ask: func(index int) string { return fmt.Sprint("veth", index) }}
	for i := range 3*maxInterfaces + 7 {
		if number, name := p.at(i, linkEthernet, time.Time{}); number != i%maxInterfaces || name != fmt.Sprint("veth", i) {
			t.Fatalf("interface %d is %d, %s", i, number, name)
		}
	}
	if len(p.list) != 7 || len(p.last) != 7 {
		t.Errorf("%d and %d are known", len(p.list), len(p.last))
	}
}

func TestLiveWithoutInterface(t *testing.T) {
	_, err := OpenLive(t.Context(), "none-such0", Filter{}, nil)
	if err == nil || !strings.Contains(err.Error(), "no interface none-such0; there are any, ") {
		t.Errorf("error %v", err)
	}
}
