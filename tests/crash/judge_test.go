package main

import (
	"encoding/binary"
	"strings"
	"testing"
)

// scene is a judge of a side 1 that is over, into whose memory the side 0 posted transactions 1 to 3 of its life 1, in
// slot 0.
type scene struct {
	*judge
	t    *testing.T
	told []string
	own  [2]*journal // of both sides, to write
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t}
	s.judge = newJudge(new(counts), func(what string) { s.told = append(s.told, what) })
	for side := range s.own {
		p := s.life(side, 1)
		s.begin(p)
	}
	for n := range uint32(3) {
		s.say(0, record{kind: isPosted, life: 1, number: n + 1, extra: 1 << 8})
	}
	return s
}

// life begins a life of a side.
func (s *scene) life(side, number int) *process {
	p := &process{orders: orders{Side: side, Life: number}}
	for _, m := range []struct {
		of   **shared
		size int
	}{{&p.mem, memorySize}, {&p.shared, journalSize}} {
		var err error
		if *m.of, err = newShared("scene", m.size); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup((*m.of).close)
	}
	p.journal, _ = newJournal(p.shared.mem)
	s.own[side], _ = newJournal(p.shared.mem)
	return p
}

func (s *scene) say(side int, r record) { s.own[side].write(r) }

// put puts some of a transaction's data into slot 0.
func (s *scene) put(n name, from, size int) {
	n.put(s.now[1].mem.mem[dataAt+from:][:size], from)
}

func (s *scene) word(n name) {
	binary.LittleEndian.PutUint32(s.now[1].mem.mem[16:], n.completion())
}

// complete puts a whole transaction.
func (s *scene) complete(n name) {
	s.put(n, 0, n.size())
	s.word(n)
	s.say(1, record{kind: isComplete, life: n.life, number: n.number})
}

// TestJudge: what is as it has to be is nothing to tell, and what is not is told.
func TestJudge(t *testing.T) {
	one, two, three := name{1, 1}, name{1, 2}, name{1, 3}
	for what, c := range map[string]struct {
		happens func(s *scene)
		says    fault // 0: nothing
	}{
		"nothing":                    {func(s *scene) {}, 0},
		"one":                        {func(s *scene) { s.complete(one); s.say(0, record{kind: isDone, life: 1, number: 1}) }, 0},
		"two, and some of the third": {func(s *scene) { s.complete(one); s.complete(two); s.put(three, 0, wordSize) }, 0},
		"a word of which nobody told": {func(s *scene) {
			s.complete(one)
			s.put(two, 0, two.size())
			s.word(two)
		}, 0},
		"a word without its data":       {func(s *scene) { s.complete(one); s.word(two) }, wordTooSoon},
		"a word, and some of its data":  {func(s *scene) { s.put(one, 0, one.size()-wordSize); s.word(one) }, wordTooSoon},
		"data that is gone":             {func(s *scene) { s.complete(one); clear(s.now[1].mem.mem[dataAt:][:wordSize]) }, doneTooSoon},
		"data of before":                {func(s *scene) { s.complete(two); s.put(one, 0, wordSize) }, lifeOver},
		"data elsewhere":                {func(s *scene) { s.put(one, wordSize, 0); one.put(s.now[1].mem.mem[dataAt+wordSize:][:wordSize], 0) }, wrongPlace},
		"data in another slot":          {func(s *scene) { one.put(s.now[1].mem.mem[stride+dataAt:][:wordSize], 0) }, wrongPlace},
		"a byte between":                {func(s *scene) { s.now[1].mem.mem[30] = 1 }, wrongPlace},
		"what nobody posted":            {func(s *scene) { s.complete(name{1, 4}) }, notPosted},
		"what was withdrawn":            {func(s *scene) { s.say(0, record{kind: isWithdrawn, life: 1, number: 1}); s.complete(one) }, notPosted},
		"twice":                         {func(s *scene) { s.complete(one); s.complete(one) }, wordTwice},
		"done, and it did not complete": {func(s *scene) { s.say(0, record{kind: isDone, life: 1, number: 1}) }, doneTooSoon},
		"done before it completed":      {func(s *scene) { s.say(0, record{kind: isDone, life: 1, number: 1}); s.complete(one) }, doneTooSoon},
		"a life behind the next one": {func(s *scene) {
			s.say(0, record{kind: isPosted, life: 2, number: 1, extra: 1<<8 | 1})
			s.say(1, record{kind: isComplete, life: 2, number: 1})
			s.complete(one)
		}, lifeOver},
		"in the next life": {func(s *scene) {
			s.complete(one)
			s.over(s.now[1])
			s.begin(s.life(1, 2))
			s.say(1, record{kind: isBegun, life: 1, number: 2})
		}, wrongLife},
		"in the next life's memory": {func(s *scene) {
			s.complete(one)
			s.over(s.now[1])
			s.begin(s.life(1, 2))
			s.put(two, 0, wordSize)
		}, wrongLife},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t)
			c.happens(s)
			s.over(s.now[1])
			if all := strings.Join(s.told, "\n"); c.says == 0 && all != "" || c.says != 0 && !strings.Contains(all, c.says.String()) {
				t.Errorf("it says %q", all)
			}
		})
	}
}
