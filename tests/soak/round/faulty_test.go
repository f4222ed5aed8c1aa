package round

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// faulty is a ground on which one bit of each long frame is wrong, and nothing notices: it is
// none of those that are checked before a frame is applied.
type faulty struct{ *simulated }

type faultyConn struct{ transport.Conn }

func (f faulty) attach(node int, n *Node) (transport.Conn, error) {
	c, err := f.simulated.attach(node, n)
	return faultyConn{c}, err
}

func (c faultyConn) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	n, err := c.Conn.Recv(dst, wait)
	for i := range n {
		if b := dst[i].Data; len(b) > 300 {
			b[len(b)-1] ^= 1
		}
	}
	return n, err
}

// quiet is a plan in which nothing is to go wrong.
func quiet(giveUp time.Duration) *Plan {
	p := &Plan{
		Seed: 1, Wire: Simnet, Kind: worlds.Native, Duration: time.Second, MTU: 1490, GiveUp: giveUp,
		Nodes: make([]Node, 2), Between: make(map[[2]int]simnet.Link),
	}
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		p.Between[way] = simnet.Link{Latency: time.Millisecond + time.Duration(way[0])}
	}
	return p
}

func (p *Plan) withFlow() {
	p.Flows = []Flow{{Way: Way{0, 1}, Slots: 4, Size: 1000, Cuts: 1, Burst: 1, Start: 1, Pause: 2 * time.Millisecond}}
}

func (p *Plan) withLink() {
	p.Links = []Link{{Way: Way{0, 1}, Buffers: 4, Size: 1000, Messages: 100, Most: 3}}
}

func (p *Plan) withLetters() { p.Letters = []Way{{0, 1}} }

// TestWhatIsWrongIsFound: a byte that the network changes, and a network that is silent for
// ever, are violations, and captures and the plan are left behind.
func TestWhatIsWrongIsFound(t *testing.T) {
	wrong := func(p *Plan) ground { return faulty{newSimulated(p)} }
	quietly := func(p *Plan) ground { return silent{newSimulated(p)} }
	for name, c := range map[string]struct {
		giveUp time.Duration
		has    func(*Plan)
		on     func(*Plan) ground
		says   string
	}{
		"byte of a transaction": {time.Second, (*Plan).withFlow, wrong, "differs at its completion"},
		// A datagram may hold several messages: the wrong byte is in the last one.
		"byte of a message": {time.Second, (*Plan).withLink, wrong, "has opcode"},
		"byte of a letter":  {time.Second, (*Plan).withLetters, wrong, "bytes, or others"},
		"silence":           {time.Second, (*Plan).withFlow, quietly, "waiting for acknowledgements"},
		"no progress":       {5 * time.Minute, (*Plan).withFlow, quietly, "nothing of 4 transactions went on for"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var counts Counts
			p := quiet(c.giveUp)
			c.has(p)
			fails := strings.Join(bubble(t, p, &counts, dir, c.on), "\n")
			if !strings.Contains(fails, c.says) || counts.Violations.Load() == 0 {
				t.Errorf("found: %s", fails)
			}
			for _, file := range []string{"soak-simnet-1-node0.pcap", "soak-simnet-1-node1.pcap", "soak-simnet-1-plan.txt"} {
				if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || len(b) < 1000 && strings.HasSuffix(file, "pcap") {
					t.Errorf("%s has %d bytes: %v", file, len(b), err)
				}
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		var counts Counts
		p := quiet(time.Second)
		p.withFlow()
		p.withLink()
		p.withLetters()
		fails := bubble(t, p, &counts, "", func(p *Plan) ground { return newSimulated(p) })
		if len(fails) > 0 || counts.Done.Load() < 100 || counts.Links.Load() != 3 || counts.Letters.Load() < 50 {
			t.Errorf("%d transactions: %v", counts.Done.Load(), fails)
		}
	})
}

// nowAndThen is a ground on which one bit of a frame is wrong now and then, of long ones and short ones, wherever it is, and nothing notices.
type nowAndThen struct{ *simulated }

type nowAndThenConn struct {
	transport.Conn
	dice worlds.Dice
}

func (f nowAndThen) attach(node int, n *Node) (transport.Conn, error) {
	c, err := f.simulated.attach(node, n)
	return &nowAndThenConn{c, worlds.NewDice(f.plan.Seed, uint64(900+node))}, err
}

func (c *nowAndThenConn) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	n, err := c.Conn.Recv(dst, wait)
	for i := range n {
		if b := dst[i].Data; c.dice.Chance(0.1) {
			b[c.dice.IntN(len(b))] ^= 1 << c.dice.IntN(8)
		}
	}
	return n, err
}

// TestSealedDeliversNoWrongByte: of ten frames one has a bit turned behind all checksums of the wire, and nothing of that is
// delivered where frames are sealed.
func TestSealedDeliversNoWrongByte(t *testing.T) {
	for _, keys := range []Keys{OneKey, EachKey} {
		for seed := range uint64(3) {
			var counts Counts
			p := quiet(30 * time.Second)
			p.Keys, p.Seed = keys, seed+1
			p.withFlow()
			p.withLink()
			p.withLetters()
			fails := bubble(t, p, &counts, t.ArtifactDir(), func(p *Plan) ground { return nowAndThen{newSimulated(p)} })
			if len(fails) > 0 || counts.Done.Load() < 50 || counts.Links.Load() == 0 || counts.Letters.Load() < 20 || counts.Again.Load() < 50 {
				t.Errorf("keys %q, seed %d: %v, %v", keys, p.Seed, &counts, fails)
			}
		}
	}
}

// silent is a ground on which nothing arrives after half a second.
type silent struct{ *simulated }

type silentConn struct {
	transport.Conn
	until time.Time
}

func (s silent) attach(node int, n *Node) (transport.Conn, error) {
	c, err := s.simulated.attach(node, n)
	return silentConn{c, time.Now().Add(500 * time.Millisecond)}, err
}

func (c silentConn) Send(batch []transport.Outgoing) (int, error) {
	if time.Now().After(c.until) {
		return len(batch), nil
	}
	return c.Conn.Send(batch)
}
