package endpoint

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestBriefIntroductionLeavesMemoryAlone (attack A18, SECURITY.md): who forges a short
// introduction under a peer's address gets a short answer, which the peer hears. It has no list
// of services, and so nobody believes it: a letter would go to the beginning of the memory.
func TestBriefIntroductionLeavesMemoryAlone(t *testing.T) {
	for _, forged := range [][]int{{0}, {1}, {0, 1}, {0, 0, 1, 1}} {
		for _, after := range []time.Duration{0, 10 * time.Microsecond, 1100 * time.Microsecond, 2100 * time.Microsecond} {
			t.Run(fmt.Sprint(forged, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { brief(t, forged, after) })
			})
		}
	}
}

func brief(t *testing.T, forged []int, after time.Duration) {
	p := newPair(t, pairConfig{})
	defer p.close()
	ids := [2]frame.EndpointID{5, 6}
	var all [2]*Endpoint
	var memory [2]*Region
	var shelves [2]*shelf
	for i, id := range ids {
		memory[i] = p.region(8192)
		all[i] = p.open(simnet.Addr(uint32(id)), &Config{ID: id, Memory: memory[i]})
		defer all[i].Close()
		shelves[i] = newShelf("post", 1<<16)
		serve(t, all[i], shelves[i])
		p.net.Link(simnet.Addr(uint32(id)), simnet.Addr(uint32(ids[1-i])), simnet.Link{Latency: time.Millisecond + time.Duration(i)})
	}
	for i, e := range all {
		p.connect(e, Peer{ID: ids[1-i], Addr: simnet.Addr(uint32(ids[1-i]))})
		ch := shelves[i].channel(0)
		ch.Mail(Letter{Life: ch.Conn().Life(), Bytes: []byte("letter")})
	}
	time.Sleep(after)
	for k, i := range forged {
		b := make([]byte, helloSize)
		h := frame.Header{Src: ids[1-i], Dst: ids[i], Flags: frame.FlagMessages}
		h.SetHelloID(uint32(1000 + k))
		h.Put(b)
		m := frame.Hello{Life: uint32(70 + k)}.Message()
		m.Put(b[frame.HeaderSize:])
		p.net.Inject(simnet.Addr(uint32(ids[1-i])), simnet.Addr(uint32(ids[i])), b)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	for i := range all {
		if !bytes.Equal(memory[i].Bytes(), make([]byte, 8192)) {
			t.Errorf("endpoint %d: the memory was written into", ids[i])
		}
		if got := fmt.Sprint(shelves[i].letters); got != "[letter]" {
			t.Errorf("endpoint %d got the letters %s", ids[i], got)
		}
	}
}
