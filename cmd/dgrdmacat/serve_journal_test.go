package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

func somePeer(n int) dgrdma.PeerName {
	return dgrdma.PeerName{ID: dgrdma.EndpointID(n), Addr: simnet.Addr(uint32(n))}
}

// gate is a writer that holds its callers up until it is opened.
type gate struct {
	lockedBuffer
	open chan struct{}
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	return g.lockedBuffer.Write(b)
}

// TestServeShowsTheLastOfABurst: of values that change faster than they can be
// printed some are left out, but all are counted and the last is shown.
func TestServeShowsTheLastOfABurst(t *testing.T) {
	noGoroutineLeft(t)
	const n = 3 * journalRoom
	file := filepath.Join(t.TempDir(), "url")
	out := &gate{open: make(chan struct{})}
	var stderr lockedBuffer
	ended := make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		ended <- run(ctx, strings.Fields("serve --accept any --watch 8 --watch 0-4 --url-file "+file+" udp:127.0.0.1"), &stdio{strings.NewReader(""), out, &stderr})
	}()
	var url string
	eventually(t, "the URL is there", func() bool {
		b, _ := os.ReadFile(file)
		url = strings.TrimSpace(string(b))
		return url != ""
	})
	mustWrite(t, url, "--flag-addr", "8", "--flag-step", "1", "--count", fmt.Sprint(n))
	mustWrite(t, url, "--flag-addr", "4", "--flag-value", "77")
	close(out.open)
	cancel()
	if code := <-ended; code != exitOK {
		t.Fatalf("code %d: %s", code, stderr.String())
	}
	shown, last := 0, 0
	for _, m := range regexp.MustCompile(`0x00000008 = 0x[0-9a-f]{8} \((\d+)\) by .*?(?:, (\d+) values before it not shown)?\n`).FindAllStringSubmatch(out.String(), -1) {
		value, _ := strconv.Atoi(m[1])
		skipped, _ := strconv.Atoi(m[2])
		if shown += 1 + skipped; value != shown {
			t.Fatalf("value %d is the %dth", value, shown)
		}
		last = value
	}
	if last != n || !strings.Contains(out.String(), "0x00000004 = 0x0000004d (77)") {
		t.Errorf("the last value shown is %d of %d", last, n)
	}
	if lines := strings.Count(out.String(), "\n"); lines > 2*journalRoom+10 {
		t.Errorf("%d lines: nothing was left out, the test shows nothing", lines)
	}
}

// TestJournalIsBounded checks that however many peers of however many addresses there are, events are printed within the budget of lines, and
// those that are not are counted (F14).
func TestJournalIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		shown, lines, began := uint64(0), 0, time.Now()
		count := func(list []entry) {
			for _, e := range list {
				shown += max(e.times, 1)
			}
			lines += len(list)
			if most := mostLines + int(time.Since(began)/lineEvery) + int(time.Since(began)/summaryEvery) + 2; lines > most {
				t.Errorf("%d lines after %v", lines, time.Since(began))
			}
			if len(j.refused) > refusedKinds || len(j.entries) > journalRoom {
				t.Errorf("%d kinds, %d entries", len(j.refused), len(j.entries))
			}
		}
		caused := uint64(0)
		for second := range 200 {
			for i := range 2 * refusedKinds {
				peer := somePeer(1 + (second*2*refusedKinds+i)%60_000)
				j.event(dgrdma.Event{Kind: dgrdma.FrameRefused, Peer: peer, Reason: 3})
				j.event(dgrdma.Event{Kind: dgrdma.PeerUp, Peer: peer})
				caused += 2
			}
			count(j.take())
			time.Sleep(time.Second)
		}
		list := j.rest()
		for _, e := range list {
			shown += max(e.times, 1)
		}
		if shown != caused || len(list) > mostLines || list[len(list)-1].kind != "not shown" {
			t.Errorf("%d events of %d are shown or counted; %d lines at the end, the last %+v", shown, caused, len(list), list[len(list)-1])
		}
	})
}

func TestRefusalsShareALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		refuse := func(n int, reason dgrdma.Reason) {
			for range n {
				j.event(dgrdma.Event{Kind: dgrdma.FrameRefused, Peer: somePeer(7), Reason: reason})
			}
		}
		said := func(list []entry) (s []string) {
			for i := range list {
				s = append(s, strings.TrimPrefix(list[i].text(), somePeer(7).String()+" "))
			}
			return s
		}
		refuse(5, 3)
		refuse(1, 2)
		if got := strings.Join(said(j.take()), "\n"); got != "refused: source: it is not one of the peers: --peer or --accept takes it\nrefused: destination: it wants another endpoint id, or asks for ours and is not one of the peers, or its --profile is opencpi2, which we are not" {
			t.Errorf("at first:\n%s", got)
		}
		refuse(5, 3)
		if got := said(j.take()); len(got) != 0 {
			t.Errorf("at once: %v", got)
		}
		time.Sleep(refusedEvery)
		if got := strings.Join(said(j.take()), "\n"); got != "refused 9 times: source: it is not one of the peers: --peer or --accept takes it" {
			t.Errorf("later:\n%s", got)
		}
		refuse(2, 3)
		if got := strings.Join(said(j.rest()), "\n"); got != "refused 2 times: source: it is not one of the peers: --peer or --accept takes it" {
			t.Errorf("at the end:\n%s", got)
		}
	})
}

// TestRefusalsUntilAPeerIsUp: what a peer sends to the life of this side before is not printed where the peer finds out soon, and else it is.
func TestRefusalsUntilAPeerIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		refuse := func(peer int, reasons ...dgrdma.Reason) {
			for _, r := range reasons {
				j.event(dgrdma.Event{Kind: dgrdma.FrameRefused, Peer: somePeer(peer), Reason: r})
			}
		}
		expect := func(when string, want ...string) {
			t.Helper()
			list, got := j.take(), []string{}
			for i := range list {
				got = append(got, list[i].text())
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		refuse(7, dgrdma.RefusedSeal, dgrdma.RefusedNoSession)
		refuse(8, dgrdma.RefusedSeal, dgrdma.RefusedSeal)
		expect("at first")
		time.Sleep(2 * time.Second)
		refuse(7, dgrdma.RefusedSeal, dgrdma.RefusedNoSession)
		refuse(8, dgrdma.RefusedSeal)
		expect("before it is up")
		j.event(dgrdma.Event{Kind: dgrdma.PeerUp, Peer: somePeer(7)})
		expect("when it is up", somePeer(7).String()+" up")
		time.Sleep(settlesWithin - 2*time.Second)
		expect("of who does not come up", somePeer(8).String()+" refused 3 times: seal"+refusedBecause["seal"])
		time.Sleep(settlesWithin)
		refuse(7, dgrdma.RefusedSeal)
		expect("of who is up, at first")
		time.Sleep(settlesWithin)
		expect("of who is up", somePeer(7).String()+" refused: seal"+refusedBecause["seal"])
	})
}

// TestWatchedWordsThatOverlap: a write changes the words that it shares a byte
// with, and no others.
func TestWatchedWordsThatOverlap(t *testing.T) {
	for _, c := range []struct {
		watch   string
		addr, n int
		want    string // addresses that changed
	}{
		{"8-16", 8, 4, "8"}, {"8-16", 7, 1, ""}, {"8-16", 7, 2, "8"}, {"8-16", 11, 1, "8"}, {"8-16", 11, 2, "8 12"}, {"8-16", 0, 40, "8 12 16"},
		{"8-16", 19, 1, "16"}, {"8-16", 20, 4, ""}, {"8-16", 0, 4, ""}, {"9", 8, 1, ""}, {"9", 12, 1, "9"}, {"9", 13, 3, ""}, {"60", 63, 1, "60"}, {"8-14", 16, 4, ""},
	} {
		region := regionOf(t, 64)
		w, err := parseWatch(c.watch)
		if err != nil {
			t.Fatal(err)
		}
		s := newServed(region, &serveOptions{watch: []span{w}}, newJournal())
		for i := range c.n {
			region.Bytes()[c.addr+i] = 0xff
		}
		s.wrote(somePeer(1), uint32(c.addr), c.n)
		var got []string
		for _, e := range s.journal.take() {
			got = append(got, fmt.Sprint(e.addr))
			if e.value != region.Load32(e.addr) {
				t.Errorf("%v: value %#x", c, e.value)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("watching %s, %d bytes at %d change %v, want %s", c.watch, c.n, c.addr, got, c.want)
		}
	}
}

// TestServeTellsOfANarrowWay: that frames are shorter than the interface carries is told once.
func TestServeTellsOfANarrowWay(t *testing.T) {
	j := newJournal()
	j.event(dgrdma.Event{Kind: dgrdma.FramesShortened, Peer: somePeer(7), Size: 1370})
	if len(j.entries) != 1 || j.entries[0].text() != "frames to peer 7 at 02:00:00:00:00:07 have 1370 bytes at most: something on the way carries less than the interface" {
		t.Errorf("%+v", j.entries)
	}
	if o := j.entries[0].object(); o.Event != "shortened" || o.Size != 1370 {
		t.Errorf("%+v", o)
	}
}

// TestServeTellsOfFramesThatNeverCame: observation V9 (docs/peers.md).
func TestServeTellsOfFramesThatNeverCame(t *testing.T) {
	j := newJournal()
	j.event(dgrdma.Event{Kind: dgrdma.FramesMissed, Peer: somePeer(7), Frames: 3})
	if len(j.entries) != 1 || j.entries[0].text() != "3 frames of peer 7 at 02:00:00:00:00:07 never came, and will not be sent again" {
		t.Errorf("%+v", j.entries)
	}
	if o := j.entries[0].object(); o.Event != "missed" || o.Times != 3 {
		t.Errorf("%+v", o)
	}
}
