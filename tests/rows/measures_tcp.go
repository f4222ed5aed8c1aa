package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// program is one that a row needs, of a package of Debian.
type program struct{ name, pkg string }

var (
	fiPingpong = program{"fi_pingpong", "libfabric-bin"}
	ucxPerf    = program{"ucx_perftest", "ucx-utils"}
)

// missing says what is to be installed; "": nothing, the program is there.
func (p program) missing() string {
	if p.name == "" {
		return ""
	}
	if _, err := exec.LookPath(p.name); err != nil {
		return fmt.Sprintf("it needs %s, which is not there: apt-get install %s", p.name, p.pkg)
	}
	return ""
}

// sendPings are pings of 64 bytes by Sends.
func (g *rig) sendPings() (oneWay float64, err error) {
	at := netip.AddrPortFrom(g.row.place.address(server), 7203).String()
	o, err := g.programs(g.child(server, "echo-verbs", at), g.child(client, "ping-verbs", at, g.pings()))
	return number(o, "p50_us"), err
}

// besideTCPPings are pings by Sends, and then over a TCP stream of Go.
func besideTCPPings(_ context.Context, g *rig) (r result, err error) {
	if r.ours, err = g.sendPings(); err != nil {
		return r, err
	}
	at := netip.AddrPortFrom(g.row.place.address(server), 7204).String()
	o, err := g.programs(g.child(server, "echo-tcp", at), g.child(client, "ping-tcp", at, g.pings()))
	r.theirs = number(o, "p50_us")
	return r, err
}

// besideStreams is a run of bench, and then a thousand streams of TCP.
func besideStreams(load string) measure {
	return func(_ context.Context, g *rig) (result, error) {
		ours, err := g.bench(load, "")
		if err != nil {
			return result{}, err
		}
		r := result{ours: number(ours, "mb_per_s"), oursCPU: number(ours, perByte)}
		r.theirs, r.theirsCPU, err = g.streams(streamBlocks)
		return r, err
	}
}

// manyStreams is a thousand streams of TCP, and then one.
func manyStreams(_ context.Context, g *rig) (r result, err error) {
	if r.ours, r.oursCPU, err = g.streams(streamBlocks); err != nil {
		return r, err
	}
	r.theirs, r.theirsCPU, err = g.streams(1)
	return r, err
}

func (g *rig) streams(n int) (perSecond, cpu float64, err error) {
	at := netip.AddrPortFrom(g.row.place.address(server), 7205).String()
	many := strconv.Itoa(n)
	o, err := g.programs(g.child(server, "take-streams", at, many), g.child(client, "fill-streams", at, many, seconds(g.opt.long)))
	return number(o, "mb_per_s"), number(o, perByte), err
}

// column returns a figure of the last line that a program prints.
func column(out string, n int) (float64, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if n >= len(fields) {
		return 0, fmt.Errorf("no figures in %q", out)
	}
	return strconv.ParseFloat(fields[n], 64)
}

// others runs a server and a client of another implementation, and returns a column of what the client prints last.
func (g *rig) others(s, c *process, n int) (float64, error) {
	if err := g.start(s); err != nil {
		return 0, err
	}
	defer func() {
		s.Process.Kill()
		s.Wait()
	}()
	if err := g.listens(s, streams); err != nil {
		return 0, err
	}
	if err := g.run(c); err != nil {
		return 0, fmt.Errorf("%w: %s; its server: %s", err, strings.TrimSpace(c.out.String()), strings.TrimSpace(s.out.String()+s.err.String()))
	}
	return column(c.out.String(), n)
}

// besideLibfabric are pings by Sends, and then those of libfabric, whose provider is TCP.
func besideLibfabric(_ context.Context, g *rig) (r result, err error) {
	if r.ours, err = g.sendPings(); err != nil {
		return r, err
	}
	args := []string{"-p", "tcp", "-e", "msg", "-S", strconv.Itoa(pingSize), "-I", g.pings()}
	const usPerTransfer = 6
	s := g.command(server, fiPingpong.name, args...)
	c := g.command(client, fiPingpong.name, append(args, g.row.place.address(server).String())...)
	r.theirs, err = g.others(s, c, usPerTransfer)
	return r, err
}

// ucxCommand is ucx_perftest at an end. It looks for devices in /sys, which has those of the namespace in which it was
// mounted.
func (g *rig) ucxCommand(end int, args ...string) *process {
	if !g.row.place.namespaces() {
		return g.command(end, ucxPerf.name, args...)
	}
	return g.command(end, "unshare", append([]string{"-m", "sh", "-c", `mount -t sysfs none /sys && exec "$0" "$@"`, ucxPerf.name}, args...)...)
}

// ucx runs ucx_perftest over TCP and returns a column of its figures.
func (g *rig) ucx(column int, args ...string) (float64, error) {
	device := netns.Device
	if !g.row.place.namespaces() {
		device = "lo"
	}
	s := g.ucxCommand(server)
	c := g.ucxCommand(client, append([]string{g.row.place.address(server).String(), "-f"}, args...)...)
	for _, p := range []*process{s, c} {
		p.Env = append(os.Environ(), "UCX_TLS=tcp", "UCX_NET_DEVICES="+device)
	}
	return g.others(s, c, column)
}

// Columns of ucx_perftest: of a latency the median, of a bandwidth all of the run, in MiB.
const (
	ucxMedian = 1
	ucxMiB    = 5
)

// putsPerSecond is how many puts of 1 MiB fill a run, roughly.
const putsPerSecond = 2000

// besideUCX is a run of bench, and then puts of UCX of the same size.
func besideUCX(load string) measure {
	return func(_ context.Context, g *rig) (r result, err error) {
		o, err := g.bench(load, "")
		if err != nil {
			return r, err
		}
		r.ours, r.oursCPU = number(o, "mb_per_s"), number(o, perByte)
		n := strconv.Itoa(max(int(putsPerSecond*g.opt.long.Seconds()), 1))
		r.theirs, err = g.ucx(ucxMiB, "-t", "ucp_put_bw", "-s", "1048576", "-n", n, "-w", "20")
		r.theirs *= 1 << 20 / 1e6
		return r, err
	}
}

// besideUCXPings are pings by Sends, and then by messages of UCX.
func besideUCXPings(_ context.Context, g *rig) (r result, err error) {
	if r.ours, err = g.sendPings(); err != nil {
		return r, err
	}
	r.theirs, err = g.ucx(ucxMedian, "-t", "tag_lat", "-s", strconv.Itoa(pingSize), "-n", g.pings(), "-w", strconv.Itoa(warmUp))
	return r, err
}
