package dgrdma

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestServicesNeedRoom checks that frames that cannot tell where a service is carry none, for its
// letters would be written where the peer's memory begins.
func TestServicesNeedRoom(t *testing.T) {
	for _, mtu := range []int{toldMTU - 1, toldMTU} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{size: 4096, a: Config{MTU: mtu}, b: Config{MTU: mtu}})
			defer p.close()
			here, there := newShelf("post", 1<<16), newShelf("post", 1<<16)
			_, err := p.a.Serve(here)
			if _, too := p.b.Serve(there); (too == nil) != (err == nil) {
				t.Fatalf("%v here, %v there", err, too)
			}
			if mtu < toldMTU {
				if err == nil || !strings.Contains(err.Error(), "which takes 138") {
					t.Fatalf("mtu %d: %v", mtu, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // they know each other: nothing of this side is for an earlier life
			here.channel(0).Mail(Letter{Life: p.toB.Life(), Bytes: []byte("letter")})
			time.Sleep(time.Second)
			p.b.Close()
			if len(there.letters) != 1 || !bytes.Equal(p.memB.Bytes(), make([]byte, 4096)) {
				t.Errorf("mtu %d: %q came, memory has %q", mtu, there.letters, bytes.Trim(p.memB.Bytes(), "\x00"))
			}
		})
	}
}
