package truth

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/verbs"
)

// rpcPlan is what a world of RPC-over-RDMA is like: a client of NFS 3 and a server, with a relay between them that sees all octets.
type rpcPlan struct {
	seed           uint64
	client, server rpc.Versions
	credits        int
	serverCredits  int
	noCRC          bool
	workers, calls int
	most           int  // octets of a READ or WRITE
	cancels        bool // some calls end with their context
	kills          int  // after so many octets the relay ends the connection; 0: never
}

func drawRPCPlan(seed uint64) rpcPlan {
	d := worlds.NewDice(seed, 31)
	p := rpcPlan{seed: seed, credits: d.Pick(1, 2, 7, 64), serverCredits: d.Pick(1, 3, 16, 64), noCRC: d.Chance(0.3), workers: d.Pick(1, 3, 10), calls: d.Between(3, 30), most: d.Pick(500, 5000, 70_000)}
	versions := []rpc.Versions{0, 0, rpc.V1, rpc.V2}
	p.client, p.server = versions[d.IntN(4)], versions[d.IntN(4)]
	if p.client == rpc.V1 && p.server == rpc.V2 || p.client == rpc.V2 && p.server == rpc.V1 {
		p.client = 0
	}
	p.cancels = d.Chance(0.2)
	if d.Chance(0.3) {
		p.kills = d.Between(500, 100_000)
	}
	return p
}

func (p rpcPlan) String() string {
	return fmt.Sprintf("client %v with %d credits, server %v with %d, without CRC %v, %d workers with %d calls of %d octets at most, cancels %v, killed after %d", p.client, p.credits, p.server,
		p.serverCredits, p.noCRC, p.workers, p.calls, p.most, p.cancels, p.kills)
}

// rpcPort is the server's, in captures.
const rpcPort = 20049

// utterance is what one side sends at once.
type utterance struct {
	conn, way int
	at        time.Duration
	data      []byte
	end       bool // it closes
}

// rpcTruth is what happened.
type rpcTruth struct {
	mu    sync.Mutex
	begin time.Time
	log   []utterance
	ports []uint16
	calls map[string]int // that the program made, by procedure, whether or not they were answered
	stats rpc.ClientStats
	quiet bool // each call was answered, on the connection that it was made on
}

func (r *rpcTruth) add(s utterance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.at = time.Since(r.begin)
	r.log = append(r.log, s)
}

func (r *rpcTruth) called(procedure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls["NFS 3 "+procedure]++
}

// runRPC carries out a plan, over loopback.
func runRPC(t *testing.T, p rpcPlan) *rpcTruth {
	truth := &rpcTruth{begin: time.Now(), calls: map[string]int{}}
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := host.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	files := localfs.NewMemory(nil)
	server := rpc.NewServer(&rpc.ServerOptions{Versions: p.server, Credits: p.serverCredits, NoCRC: p.noCRC})
	nfs3.NewServer(files, &nfs3.ServerOptions{Squash: nfs3.SquashNone}).Register(server)
	served := make(chan error, 1)
	go func() { served <- server.ServeRDMA(l) }()
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { truth.relay(relay, l.Addr().String(), p.kills, &pumps) })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := rpc.Dial(ctx, "rdma:"+relay.Addr().String(), &rpc.ClientOptions{Versions: p.client, Credits: p.credits, NoCRC: p.noCRC, Resend: true})
	if err != nil {
		t.Fatalf("seed %d: %v: %v", p.seed, p, err)
	}
	truth.load(ctx, t, p, client, files)
	truth.stats = client.Stats()
	client.Close()
	server.Close()
	<-served
	relay.Close()
	pumps.Wait()
	truth.quiet = !p.cancels && truth.stats.Connections == 1
	return truth
}

// relay passes on what comes, and writes it down before.
func (r *rpcTruth) relay(l net.Listener, to string, kills int, pumps *sync.WaitGroup) {
	for {
		a, err := l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", to)
		if err != nil {
			a.Close()
			continue
		}
		r.mu.Lock()
		conn := len(r.ports)
		r.ports = append(r.ports, netip.MustParseAddrPort(a.RemoteAddr().String()).Port())
		r.mu.Unlock()
		var both sync.Mutex
		left := kills
		pump := func(way int, from, into net.Conn) {
			buf := make([]byte, 64<<10)
			for {
				n, err := from.Read(buf)
				if n > 0 {
					both.Lock()
					killed := kills > 0 && conn == 0 && left <= n
					left -= n
					both.Unlock()
					if killed {
						break
					}
					r.add(utterance{conn: conn, way: way, data: append([]byte(nil), buf[:n]...)})
					if _, err := into.Write(buf[:n]); err != nil {
						break
					}
				}
				if err != nil {
					break
				}
			}
			r.add(utterance{conn: conn, way: way, end: true})
			from.Close()
			into.Close()
		}
		pumps.Go(func() { pump(0, a, b) })
		pumps.Go(func() { pump(1, b, a) })
	}
}

// load is what the program does.
func (r *rpcTruth) load(ctx context.Context, t *testing.T, p rpcPlan, client *rpc.Client, files *localfs.Memory) {
	root, err := files.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.called("FSINFO")
	c, err := nfs3.NewClient(ctx, client, root.Handle, nil)
	if err != nil {
		t.Fatalf("seed %d: %v", p.seed, err)
	}
	var workers sync.WaitGroup
	for w := range p.workers {
		workers.Go(func() {
			d := worlds.NewDice(p.seed, uint64(100+w))
			r.called("CREATE")
			f, _, err := c.Create(ctx, nil, root.Handle, fmt.Sprint("file", w), &nfs3.CreateHow{})
			if err != nil {
				t.Errorf("seed %d: %v", p.seed, err)
				return
			}
			for range p.calls {
				own, cancel := ctx, func() {}
				if p.cancels && d.Chance(0.2) {
					own, cancel = context.WithTimeout(ctx, time.Duration(d.IntN(400))*time.Microsecond)
				}
				err := r.call(own, d, p, c, root.Handle, f.Handle)
				cancel()
				if err != nil && own == ctx {
					t.Errorf("seed %d: %v", p.seed, err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// call makes one call.
func (r *rpcTruth) call(ctx context.Context, d worlds.Dice, p rpcPlan, c *nfs3.Client, root, file nfs3.Handle) (err error) {
	n := 1 + d.IntN(p.most)
	switch d.IntN(6) {
	case 0:
		r.called("GETATTR")
		_, err = c.GetAttr(ctx, nil, file)
	case 1:
		r.called("LOOKUP")
		if _, err = c.Lookup(ctx, nil, root, "nothing"); errors.Is(err, nfs3.ErrNoEnt) {
			err = nil
		}
	case 2, 3:
		r.called("WRITE")
		_, _, err = c.Write(ctx, nil, file, make([]byte, n), 0, nfs3.FileSync)
	case 4:
		r.called("READ")
		_, _, err = c.Read(ctx, nil, file, make([]byte, n), 0)
		if err == io.EOF {
			err = nil
		}
	case 5:
		r.called("READDIRPLUS")
		_, err = c.ReadDir(ctx, nil, root, nfs3.DirPosition{}, true, func(*nfs3.DirEntry) bool { return false })
	}
	return err
}

// records makes a capture of what was said: TCP segments as of an interface with that MTU.
func (r *rpcTruth) records(mtu int) (all []capture.Record) {
	seq := map[[2]int]uint32{}
	ended := map[[2]int]bool{}
	put := func(s utterance, flags byte, data []byte) {
		from, to := [2]int{s.conn, s.way}, [2]int{s.conn, 1 - s.way}
		b := make([]byte, 40, 40+len(data))
		b[0], b[9], b[32], b[33], b[34] = 0x45, 6, 5<<4, flags, 0xff
		binary.BigEndian.PutUint16(b[2:], uint16(40+len(data)))
		b[12], b[15], b[16], b[19] = 10, byte(1+s.way), 10, byte(2-s.way)
		ports := [2]uint16{r.ports[s.conn], rpcPort}
		binary.BigEndian.PutUint16(b[20:], ports[s.way])
		binary.BigEndian.PutUint16(b[22:], ports[1-s.way])
		binary.BigEndian.PutUint32(b[24:], seq[from])
		binary.BigEndian.PutUint32(b[28:], seq[to])
		b = append(b, data...)
		seq[from] += uint32(len(data))
		if flags&(capture.SYN|capture.FIN) != 0 {
			seq[from]++
		}
		all = append(all, capture.Record{Time: time.Unix(1_700_000_000, 0).Add(s.at), LinkType: 101, Data: b, Length: len(b)})
	}
	seen := map[int]bool{}
	for _, s := range r.log {
		if !seen[s.conn] {
			seen[s.conn] = true
			for way := range 2 {
				seq[[2]int{s.conn, way}] = uint32(1000*s.conn) - uint32(5000*way) // the second wraps
			}
			put(utterance{conn: s.conn, at: s.at}, capture.SYN, nil)
			put(utterance{conn: s.conn, way: 1, at: s.at}, capture.SYN|capture.ACK, nil)
		}
		if s.end {
			if !ended[[2]int{s.conn, s.way}] {
				ended[[2]int{s.conn, s.way}] = true
				put(s, capture.FIN|capture.ACK, nil)
			}
			continue
		}
		for data := s.data; len(data) > 0; {
			n := min(len(data), mtu-40)
			put(s, capture.ACK, data[:n])
			data = data[n:]
		}
	}
	return all
}
