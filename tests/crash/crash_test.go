package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestMain is also main of the sides.
func TestMain(m *testing.M) {
	if text := os.Getenv(sideVariable); text != "" {
		fmt.Fprintln(os.Stderr, "crash: side:", runSide(text))
		os.Exit(1)
	}
	fixture.WaitBeside(8)
	os.Exit(fixture.Run(m))
}

// run kills some processes, and returns what was said.
func run(t *testing.T, args string) (ok bool, said string) {
	t.Helper()
	o, err := parse(strings.Fields(args+" -giveup 500ms"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.within = time.Minute // a machine may be busy
	var out bytes.Buffer
	ok = crash(o, &out)
	return ok, out.String()
}

// TestCrash: over each wire, sealed and not, what is killed begins anew and works, and what was said of it holds.
func TestCrash(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, wire := range []string{wireLoopback, wireUDP, wireEther} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			if wire != wireLoopback {
				netns.Require(t)
			}
			for _, load := range []string{transactions, links} {
				for _, seal := range []string{"", " -sealed"} {
					t.Run(load+seal, func(t *testing.T) {
						t.Parallel()
						ok, said := run(t, "-kills 12 -wire "+wire+" -load "+load+seal)
						if t.Log(said); !ok || !strings.Contains(said, "; 0 violations\n") {
							t.Error("something was wrong")
						}
					})
				}
			}
		})
	}
}

// Ways to be wrong.
func init() {
	changed := func(k kind, change func(s *side, r record)) func(*side) {
		return func(s *side) {
			s.report = func(r record) {
				if r.kind == k {
					change(s, r)
					return
				}
				s.journal.write(r)
			}
		}
	}
	variants["hasty"] = func(s *side) { // reports done what it has posted
		s.report = func(r record) {
			if r.kind == isDone {
				return
			}
			s.journal.write(r)
			if r.kind == isPosted {
				r.kind = isDone
				s.journal.write(r)
			}
		}
	}
	variants["repeats"] = func(s *side) { s.repeats = true }
	variants["word first"] = func(s *side) { s.memory = &wordFirst{memory: &memory{Region: s.region, s: s}} }
	variants["forgets"] = func(s *side) { s.memory = &forgets{memory: &memory{Region: s.region, s: s}} }
	variants["any life"] = changed(isPosted, func(s *side, r record) { r.extra &= 0xff; s.journal.write(r) })
	variants["other errors"] = func(s *side) { s.wrong(saysNothing, name{}, io.ErrUnexpectedEOF) }
	variants["dumb"] = changed(isComplete, func(s *side, r record) {
		if s.Life == 1 {
			s.journal.write(r)
		}
	})
	variants["exits"] = changed(isComplete, func(*side, record) { os.Exit(0) })
	variants["flushes"] = changed(isFlushed, func(s *side, r record) { r.extra += 3000; s.journal.write(r) })
	variants["doubles"] = changed(isReceived, func(s *side, r record) { s.journal.write(r); s.journal.write(r) })
}

// wordFirst is memory that writes the completion word with the first bytes of data.
type wordFirst struct {
	*memory
	last uint32
}

func (m *wordFirst) Admit(src dgrdma.EndpointID, msg *dgrdma.Message) ([]byte, error) {
	if msg.CompletionValue != m.last {
		m.last = msg.CompletionValue
		m.Region.Complete(src, msg)
		time.Sleep(time.Millisecond)
	}
	return m.Region.Admit(src, msg)
}

// forgets is memory in which the last bytes of every tenth transaction get lost, and of which its program notices
// nothing.
type forgets struct{ *memory }

func (m *forgets) Complete(src dgrdma.EndpointID, msg *dgrdma.Message) {
	n, _, _ := wordOf(m.slot(msg.CompletionAddr)[dataAt:])
	if n.number%10 == 0 {
		clear(m.slot(msg.CompletionAddr)[dataAt+n.size()-wordSize:][:wordSize])
	}
	m.Region.Complete(src, msg)
	m.s.report(record{kind: isComplete, life: n.life, number: n.number})
}

// TestVariants: what is wrong with sides is told.
func TestVariants(t *testing.T) {
	t.Parallel()
	for variant, c := range map[string]struct {
		load string
		says fault
	}{
		"hasty":        {transactions, doneTooSoon},
		"repeats":      {transactions, wordTwice},
		"word first":   {transactions, wordTooSoon},
		"forgets":      {transactions, doneTooSoon},
		"any life":     {transactions, wrongLife},
		"other errors": {transactions, saysNothing},
		"dumb":         {transactions, noProgress},
		"exits":        {transactions, ended},
		"flushes":      {links, notReceived},
		"doubles":      {links, badMessage},
	} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			o, err := parse([]string{"-load", c.load, "-giveup", "500ms", "-for", "2m", "-within", "3s"}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			o.variant = variant
			out := &until{says: "VIOLATION", of: c.says.String(), o: o}
			if crash(o, out) || !out.said {
				t.Errorf("it does not say %q but %s", c.says, &out.Buffer)
			}
		})
	}
}

// until ends a run when something was said that was waited for.
type until struct {
	bytes.Buffer
	says, of string
	o        *options
	said     bool
}

func (u *until) Write(b []byte) (int, error) {
	if line := string(b); strings.Contains(line, u.says) && strings.Contains(line, u.of) {
		u.said = true
		u.o.kills = 1
	}
	return u.Buffer.Write(b)
}

// TestOptions: what the command line says, and what is wrong with it.
func TestOptions(t *testing.T) {
	o, err := parse([]string{"-for", "30s", "-giveup", "1s"}, io.Discard)
	if err != nil || o.total != 30*time.Second || o.within != 4*time.Second || o.wire != wireLoopback || o.load != transactions || o.seed == 0 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, c := range []struct{ args, says string }{
		{"-wire smoke", `no wire "smoke"; there are loopback, udp and ether`},
		{"-load hay", `no load "hay"; there are transactions and links`},
		{"-for 0s", "a time is not positive"},
		{"more", `"more": there are only flags`},
	} {
		if _, err := parse(strings.Fields(c.args), io.Discard); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
	var usage bytes.Buffer
	if _, err := parse([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "-giveup time") {
		t.Errorf("%v, %q", err, &usage)
	}
}
