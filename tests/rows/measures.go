package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// number returns a figure of an object.
func number(o map[string]any, key string) float64 {
	n, _ := o[key].(float64)
	return n
}

// bench runs bench for as long as a run takes; both are the flags that both ends need.
func (g *rig) bench(load, both string) (map[string]any, error) {
	args := append(strings.Fields(load), strings.Fields(both)...)
	return g.both("bench", strings.Fields(both), append(args, "--seconds", seconds(g.opt.long)))
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }

// compared is a run of bench that takes turns with another protocol.
func compared(with, load, both string) measure {
	return func(_ context.Context, g *rig) (result, error) {
		load := load + " --compare " + with
		if g.row.overTCP() { // all connections have the namespace's
			load += " --congestion " + bench.DefaultController
		}
		o, err := g.bench(load, both)
		if err != nil {
			return result{}, err
		}
		ours, _ := o["ours"].(map[string]any)
		theirs, _ := o["compare"].([]any)
		if len(theirs) != 1 {
			return result{}, fmt.Errorf("bench compared nothing: %v", o)
		}
		other := theirs[0].(map[string]any)
		r := result{ours: number(ours, "mb_per_s"), theirs: number(other, "mb_per_s"), oursCPU: number(ours, perByte), theirsCPU: number(other, perByte)}
		if g.row.overTCP() {
			return r, nil // which has its own choice
		}
		r.by, _ = other["congestion"].(string)
		if byDefault, _ := other["by_default"].(map[string]any); byDefault != nil {
			r.byItself, _ = byDefault["congestion"].(string)
			r.byDefault = number(byDefault, "mb_per_s")
		}
		return r, nil
	}
}

// sideBySide is a result of two runs, one of ours and one of what that is compared to.
func sideBySide(figure string, ours, theirs map[string]any) result {
	return result{ours: number(ours, figure), theirs: number(theirs, figure), oursCPU: number(ours, perByte), theirsCPU: number(theirs, perByte)}
}

// versus is one run of bench, and then another one.
func versus(figure, load, both, otherLoad, otherBoth string) measure {
	return func(_ context.Context, g *rig) (result, error) {
		ours, err := g.bench(load, both)
		if err != nil {
			return result{}, err
		}
		theirs, err := g.bench(otherLoad, otherBoth)
		return sideBySide(figure, ours, theirs), err
	}
}

// besideNoLoss is a run of bench where some is lost, and then one where nothing is.
func besideNoLoss(load string) measure { return beside(load, "", func(r *row) { r.loss = 0 }) }

// besideCalls is a run of bench with those flags of both ends, and then one without them that sends by system calls.
func besideCalls(load, both string) measure {
	return beside(load, both, func(r *row) { r.place.options = "xdp=off" })
}

// besideUnsealed is a run of bench that is sealed, and then one that is not.
func besideUnsealed(load string) measure {
	return beside(load, "", func(r *row) { r.place.sealed = false })
}

// beside is a run of bench with those flags of both ends, and then one without them where something is different.
func beside(load, both string, change func(*row)) measure {
	return func(ctx context.Context, g *rig) (result, error) {
		ours, err := g.bench(load, both)
		if err != nil {
			return result{}, err
		}
		changed := *g.row
		change(&changed)
		other, err := newRig(ctx, &changed, g.opt, g.tools)
		if err != nil {
			return result{}, err
		}
		defer other.close()
		theirs, err := other.bench(load, "")
		return sideBySide("mb_per_s", ours, theirs), err
	}
}

// anywhere is a run of bench whose client has no --local, and then one whose client has.
func anywhere(load string) measure {
	return func(_ context.Context, g *rig) (result, error) {
		g.anywhere = true
		ours, err := g.bench(load, "")
		if err != nil {
			return result{}, err
		}
		g.anywhere = false
		theirs, err := g.bench(load, "")
		return sideBySide("mb_per_s", ours, theirs), err
	}
}

// pingsAnywhere is ping whose client has no --local, and then one whose client has.
func pingsAnywhere(flags string) measure {
	return func(_ context.Context, g *rig) (result, error) {
		ping := func() (map[string]any, error) {
			return g.both("ping", strings.Fields(flags), append(strings.Fields(flags), "-n", g.pings()))
		}
		g.anywhere = true
		ours, err := ping()
		if err != nil {
			return result{}, err
		}
		g.anywhere = false
		theirs, err := ping()
		return sideBySide("p50_us", ours, theirs), err
	}
}

// besideRing is ping over Ethernet, and then packet sockets with a ring that do the same.
func besideRing(_ context.Context, g *rig) (result, error) {
	const spin = "--busy-poll"
	ours, err := g.both("ping", []string{spin}, []string{spin, "-n", g.pings()})
	if err != nil {
		return result{}, err
	}
	mac := ""
	g.pair[server].In(func() {
		if i, e := net.InterfaceByName(netns.Device); e == nil {
			mac = i.HardwareAddr.String()
		}
	})
	theirs, err := g.programs(g.child(server, "echo-ring", netns.Device), g.child(client, "ping-ring", netns.Device, mac, g.pings()))
	return sideBySide("p50_us", ours, theirs), err
}

// alone is a run of bench that is compared to nothing.
func alone(figure string, scale float64, load string) measure {
	both := ""
	if strings.HasPrefix(load, "--link ") {
		both = "--link"
	}
	return func(_ context.Context, g *rig) (result, error) {
		o, err := g.bench(strings.TrimPrefix(load, both), both)
		return result{ours: number(o, figure) * scale, oursCPU: number(o, perByte)}, err
	}
}

// besideQUIC is a run of bench, and then one of tests/quic.
func besideQUIC(_ context.Context, g *rig) (result, error) {
	ours, err := g.bench(plain, "")
	if err != nil {
		return result{}, err
	}
	const port = 7200
	at := netip.AddrPortFrom(g.row.place.address(server), port).String()
	theirs, err := g.programs(g.command(server, g.tools.quic, "-serve", at), g.command(client, g.tools.quic, "-to", at, "-seconds", seconds(g.opt.long)))
	return sideBySide("mb_per_s", ours, theirs), err
}

// programs runs two programs that know each other's address, and returns what the client says.
func (g *rig) programs(s, c *process) (map[string]any, error) {
	if err := g.start(s); err != nil {
		return nil, err
	}
	err := g.listens(s, sockets)
	if err == nil {
		err = g.run(c)
	}
	s.Process.Kill()
	s.Wait()
	if err != nil {
		return nil, fmt.Errorf("%w; its server: %s", err, s.err.String())
	}
	return g.figuresOf(s, c)
}

// pingsPerSecond is how many pings fill a run, roughly.
const pingsPerSecond = 20_000

func (g *rig) pings() string { return strconv.Itoa(int(pingsPerSecond * g.opt.long.Seconds())) }

// pings is ping, and then plain sockets that do the same.
func pings(both, role string) measure {
	return func(_ context.Context, g *rig) (result, error) {
		ours, err := g.both("ping", strings.Fields(both), append(strings.Fields(both), "-n", g.pings()))
		if err != nil {
			return result{}, err
		}
		at := netip.AddrPortFrom(g.row.place.address(server), 7201).String()
		theirs, err := g.programs(g.child(server, "echo", role, at), g.child(client, "ping", role, at, g.pings()))
		return sideBySide("p50_us", ours, theirs), err
	}
}

// linkPings is ping over a link, and then without.
func linkPings(both string) measure {
	return func(_ context.Context, g *rig) (result, error) {
		ping := func(both ...string) (map[string]any, error) {
			return g.both("ping", both, append(both, "-n", g.pings()))
		}
		ours, err := ping(append(strings.Fields(both), "--link")...)
		if err != nil {
			return result{}, err
		}
		theirs, err := ping(strings.Fields(both)...)
		return sideBySide("p50_us", ours, theirs), err
	}
}

// child is this program in another role.
func (g *rig) child(end int, role string, args ...string) *process {
	p := g.command(end, g.tools.self, args...)
	p.Env = append(os.Environ(), roleVariable+"="+role)
	return p
}

// tmpfs is where a file is memory.
const tmpfs = "/dev/shm"

// send is a file that send moves, and then one that plain sockets do.
func send(size int64) measure {
	return func(_ context.Context, g *rig) (result, error) {
		dir, err := os.MkdirTemp(tmpfs, "dgrdma-rows.")
		if err != nil {
			return result{}, err
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, "file")
		if err := fill(file, size); err != nil {
			return result{}, err
		}
		s, url, err := g.serve("listen", "-o", os.DevNull)
		if err != nil {
			return result{}, err
		}
		c := g.command(client, g.tools.dgrdmacat, "send", "--json", "--local", g.local(client), file, url)
		if err := g.run(c); err != nil {
			s.Process.Kill()
			s.Wait()
			return result{}, err
		}
		if err := s.ended(patience); err != nil {
			return result{}, err
		}
		ours, err := g.object(c)
		if err != nil {
			return result{}, err
		}
		at := netip.AddrPortFrom(g.row.place.address(server), 7202).String()
		theirs, err := g.programs(g.child(server, "drain", at), g.child(client, "pour", at, file))
		return sideBySide("mb_per_s", ours, theirs), err
	}
}
