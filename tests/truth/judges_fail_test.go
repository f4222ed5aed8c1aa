package truth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/inspect"
)

var firstCount = regexp.MustCompile(`\b[\d,]*\d\b`)

// more makes the first number of a finding one that nothing has.
func more(f *inspect.Finding) { f.Text = replaced(f.Text, firstCount.FindStringIndex(f.Text)) }

// moreAfter does that with the first number after some words.
func moreAfter(words string) func(f *inspect.Finding) {
	return func(f *inspect.Finding) {
		if i := strings.Index(f.Text, words); i >= 0 {
			at := firstCount.FindStringIndex(f.Text[i+len(words):])
			f.Text = f.Text[:i+len(words)] + replaced(f.Text[i+len(words):], at)
		}
	}
}

func replaced(s string, at []int) string {
	if at == nil {
		return s
	}
	return s[:at[0]] + "9,999,999" + s[at[1]:]
}

// elsewhere points to records that do not exist.
func elsewhere(f *inspect.Finding) {
	f.Records = append([]int(nil), f.Records...)
	for i := range f.Records {
		f.Records[i] += 1 << 20
	}
}

// falsified says, by kind, how a true finding becomes false.
var falsified = map[string]func(f *inspect.Finding){
	"sent again": more, "duplicates": more, "late": more, "not acknowledged": more, "gap": more, "transaction": moreAfter("Of "), "frame": moreAfter("Frame"),
	"lost": more, "in vain": more, "transmissions before": more, "ended session": more, "unknown session": more, "sealed copies": more, "sealed gap": more, "twice in the capture": more,
	"sessions": moreAfter(" are of "), "RESET": moreAfter(" answered "), "BYE": elsewhere, "REJECT": elsewhere, "restart": elsewhere,
	"capture incomplete": moreAfter("acknowledges "),
}

// TestJudgesFail checks that judges call findings false that were true before a number or a record of them was changed, of each kind that some
// worlds have, and that what a report must say is missed when it does not.
func TestJudgesFail(t *testing.T) {
	seen := map[string]int{}
	seeds := slices.Clone(falseOnce)
	for seed := range uint64(60) {
		seeds = append(seeds, 1+seed)
	}
	for _, seed := range seeds {
		j := look(t, seed)
		if len(j.wrong) > 0 {
			continue // TestReportsAreTrue has it
		}
		for i := range j.report.Findings {
			f := j.report.Findings[i]
			was := f.Text + fmt.Sprint(f.Records)
			if change := falsified[f.Kind]; change == nil || strings.Contains(f.Text, "no frame had them") { // of ids that nothing had the truth knows nothing
				continue
			} else if change(&f); f.Text+fmt.Sprint(f.Records) == was {
				continue
			}
			j.wrong = nil
			j.judge(&f)
			if seen[f.Kind]++; len(j.wrong) == 0 {
				t.Errorf("seed %d: %s: nothing is false of %q %v", seed, f.Kind, f.Text, f.Records)
			}
		}
		j.wrong = nil
		for i := range j.report.Flows {
			if r := &j.report.Flows[i]; r.Resent > 0 {
				r.Resent--
				r.Firsts--
				r.MissingAcked++
			}
		}
		if len(j.report.Flows) > 0 && j.report.Flows[0].Resent > 0 && j.plan.kind.Native() && !j.restarts() && !j.capture.twice && !j.plan.sealed && !j.snapped() && !j.capture.cut {
			seen["demands"]++
			if j.demand(); len(j.wrong) == 0 {
				t.Errorf("seed %d: a copy is not missed", seed)
			}
		}
	}
	t.Log(seen)
	for _, kind := range []string{"sent again", "duplicates", "late", "frame", "lost", "in vain", "transmissions before", "unknown session", "sessions", "BYE", "capture incomplete", "demands"} {
		if seen[kind] == 0 {
			t.Errorf("no world has %q", kind)
		}
	}
}

// TestLedgerSeesBrokenFrames checks that the ledger notes what no endpoint may send in a session.
func TestLedgerSeesBrokenFrames(t *testing.T) {
	const one, two = 1000, 2000
	tag := session.Tag(two, one)
	data := func(id uint32, copied uint8, value uint32) []byte {
		b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize)
		h := frame.SessionHeader{Dst: 2, Src: 1, ID: id, Copy: copied, Tag: tag, Ack: two}
		h.Put(b)
		(&frame.Message{Txn: id, CompletionValue: value, Count: 1, Index: 1}).Put(b[frame.SessionHeaderSize:])
		return b
	}
	welcome := make([]byte, frame.HandshakeSize)
	h := frame.Handshake{Kind: frame.HandshakeWelcome, Sender: two, Receiver: one, Check: 5}
	h.Put(welcome, 1, 2)
	for name, tt := range map[string]struct {
		frames [][]byte
		want   string // "": nothing is broken
	}{
		"all is well":           {[][]byte{data(1001, 0, 1), data(1002, 0, 1), data(1001, 1, 1)}, ""},
		"a copy has no number":  {[][]byte{data(1001, 0, 1), data(1001, 0, 1)}, "for the 1th time as copy 0"},
		"a number is left out":  {[][]byte{data(1001, 1, 1)}, "for the 0th time as copy 1"},
		"another content":       {[][]byte{data(1001, 0, 1), data(1001, 1, 2)}, "other content"},
		"it cannot be parsed":   {[][]byte{data(1001, 0, 1)[:30]}, "node 0 sent"},
		"there is no handshake": {[][]byte{append(data(1001, 0, 1)[:10:10], append([]byte{9, 9, 9, 9}, data(1001, 0, 1)[14:]...)...)}, "no handshake"},
	} {
		l := newLedger()
		l.sends(1, 0, 0, welcome)
		for _, b := range tt.frames {
			l.sends(0, 1, 0, b)
		}
		if got := strings.Join(l.broken, "\n"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestLedgerAcknowledgements checks which contents a frame of a session acknowledges: up to an id, and by ranges, over the wrap of 32 bits.
func TestLedgerAcknowledgements(t *testing.T) {
	s := &sending{content: &content{from: 1, to: 0}, acked: true, back: 7, upTo: 0xFFFFFFFF, ranges: []frame.Range{{First: 2, Count: 2}}}
	for id, want := range map[uint32]bool{0xFFFFFFFE: true, 0xFFFFFFFF: true, 0: false, 1: false, 2: true, 3: true, 4: false} {
		c := &content{from: 0, to: 1, session: 7, id: id, messages: true}
		if got := s.acknowledges(c, true); got != want {
			t.Errorf("id %d: %v, want %v", id, got, want)
		}
		if got := s.acknowledges(c, false); got != (want && int32(id) < 0) {
			t.Errorf("id %d without ranges: %v", id, got)
		}
		c.session = 8
		if s.acknowledges(c, true) {
			t.Errorf("id %d of another session", id)
		}
	}
}
