package main

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// pair is two sides, each of which begins anew whenever it was killed.
type pair struct {
	o      *options
	dice   worlds.Dice
	counts *counts
	judge  *judge
	board  board
	shared *shared // the board
	ns     netns.Pair
	urls   [2]string
	key    *dgrdma.Key
	lives  [2]int
	sides  [2]*process
	armed  int
	story  []string // what happened since they worked last
}

func (p *pair) tell(format string, args ...any) {
	p.story = append(p.story, fmt.Sprintf(format, args...))
}

// patience is how long what takes no time may take, on a machine that is busy.
const patience = 30 * time.Second

// runPair runs a pair until the time, or the number of kills, is over.
func runPair(o *options, c *counts, tell func(string)) error {
	// The sides end with the thread that starts them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := &pair{o: o, dice: worlds.NewDice(o.seed, 0), counts: c, judge: newJudge(c, tell)}
	if err := p.place(); err != nil {
		return err
	}
	defer p.ns.Close()
	var err error
	if p.shared, err = newShared("board", boardSize); err != nil {
		return err
	}
	defer p.shared.close()
	if p.board, err = newBoard(p.shared.mem); err != nil {
		return err
	}
	if o.sealed {
		k := dgrdma.NewKey()
		p.key = &k
	}
	defer p.end()
	for side := range p.sides {
		if err := p.start(side); err != nil {
			return err
		}
	}
	p.judge.watch()
	for end := time.Now().Add(o.total); time.Now().Before(end) && (o.kills == 0 || c.kills.Load() < o.kills); {
		if err := p.event(); err != nil {
			return err
		}
	}
	for _, s := range p.sides {
		s.kill()
	}
	for _, s := range p.sides {
		p.judgeOver(s)
	}
	return nil
}

// end ends the sides, whatever became of the run.
func (p *pair) end() {
	for _, s := range p.sides {
		if s != nil {
			s.kill()
			s.close()
		}
	}
}

// place finds out where the sides are.
func (p *pair) place() (err error) {
	if p.o.wire != wireLoopback {
		if p.ns, err = netns.OpenPair(1500); err != nil {
			return err
		}
	}
	for side := range p.urls {
		switch p.o.wire {
		case wireEther:
			p.urls[side] = "ether:" + netns.Device
		case wireUDP:
			p.urls[side] = fmt.Sprintf("udp:%v:7100", netns.IPv4(side))
		default:
			c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				return err
			}
			defer c.Close() // the ports are two
			p.urls[side] = "udp:" + c.LocalAddr().String()
		}
	}
	return nil
}

// start begins the next life of a side.
func (p *pair) start(side int) error {
	p.lives[side]++
	o := orders{
		Side: side, Life: p.lives[side], URL: p.urls[side], Seed: p.o.seed, GiveUp: p.o.giveUp, Key: p.key, Load: p.o.load, Variant: p.o.variant,
		Manner: manner{
			Accepts: side == 1 && p.dice.Chance(0.5), Renews: p.dice.Chance(0.4), Waits: p.dice.Chance(0.5),
			Looks: p.dice.Chance(0.5), Traces: p.dice.Chance(0.5),
		},
	}
	s, err := start(o, p.ns[side], p.board, p.shared.file)
	if err != nil {
		return err
	}
	if before := p.sides[side]; before != nil {
		before.close()
	}
	p.sides[side] = s
	p.judge.begin(s)
	p.tell("life %d of side %d begins: %+v", o.Life, side, o.Manner)
	return nil
}

// event has something happen to the sides, and waits until they work again, or does not.
func (p *pair) event() error {
	d := p.dice
	victim := d.IntN(2)
	for side, s := range p.sides {
		if s.journal.full() > 0.5 {
			victim = side
		}
	}
	p.judge.watch()
	p.story = p.story[:0]
	since := p.judge.since
	switch x := d.Float64(); {
	case x < 0.1:
		var err error
		if since, err = p.stop(victim); err != nil {
			return err
		}
	case x < 0.5:
		time.Sleep(d.Span(20*time.Microsecond, 300*time.Millisecond))
		p.killNow(victim)
	default:
		p.killIn(victim)
	}
	for {
		twice := d.Chance(0.35) // before they work
		again, err := p.revive(twice && d.Chance(0.5))
		if err != nil {
			return err
		}
		if again && twice {
			time.Sleep(d.Span(20*time.Microsecond, 30*time.Millisecond))
			p.killNow(d.IntN(2))
			continue
		}
		killed, err := p.work(since)
		if err != nil || !killed {
			return err
		}
	}
}

// killNow kills a side, or both at once.
func (p *pair) killNow(victim int) {
	p.sides[victim].cmd.Process.Kill()
	if p.dice.Chance(0.15) {
		p.sides[1-victim].cmd.Process.Kill()
		<-p.sides[1-victim].exited
	}
	<-p.sides[victim].exited
}

// arm has a side kill itself, or the other one, or both, in a moment of its own.
func (p *pair) arm(side int) {
	t := trigger{
		Moment: moment(p.dice.Between(int(opened), int(mostMoment)-1)), Count: int(p.dice.Span(1, 200)),
		Own: true, Peer: p.dice.Chance(0.15),
	}
	if p.dice.Chance(0.3) {
		t.Own, t.Peer = false, true
	}
	p.tell("armed on side %d: %+v", side, t)
	p.armed++
	p.board.arm(side, t.word(p.armed))
}

// killIn waits until a side has killed what it is to kill, and kills it if the moment does not come.
func (p *pair) killIn(victim int) {
	p.arm(victim)
	select {
	case <-p.sides[0].exited:
	case <-p.sides[1].exited:
	case <-time.After(p.dice.Span(time.Millisecond, 300*time.Millisecond)):
		p.killNow(victim)
	}
}

// stop stops a side for a while, sometimes for longer than the other one has patience, and returns when it goes on.
// Sometimes the other one is killed meanwhile, and begins anew before.
func (p *pair) stop(victim int) (at instant, err error) {
	s := p.sides[victim]
	s.cmd.Process.Signal(syscall.SIGSTOP)
	p.counts.stops.Add(1)
	p.tell("side %d stops", victim)
	time.Sleep(p.dice.Span(p.o.giveUp/100, 2*p.o.giveUp))
	if p.dice.Chance(0.3) {
		p.killNow(1 - victim) // and perhaps this one, where it stands
		if p.dice.Chance(0.5) {
			if err = p.bury(1 - victim); err == nil {
				err = p.start(1 - victim)
			}
			time.Sleep(p.dice.Span(time.Millisecond, p.o.giveUp))
		}
	}
	at = now()
	p.tell("it goes on")
	s.cmd.Process.Signal(syscall.SIGCONT)
	return at, err
}

// revive begins the next lives of sides that are gone, some a little later, and reports whether there are any. armed: each
// begins with a moment in which it is to end.
func (p *pair) revive(armed bool) (again bool, err error) {
	gone := 0
	for side, s := range p.sides {
		if !s.gone() {
			continue
		}
		gone++
		if err := p.bury(side); err != nil {
			return true, err
		}
	}
	if gone == 0 {
		return false, nil
	}
	if gone == 2 {
		p.counts.both.Add(1)
	}
	switch x := p.dice.Float64(); {
	case x < 0.1:
		time.Sleep(p.dice.Span(100*time.Millisecond, 2*p.o.giveUp))
	case x < 0.4:
		time.Sleep(p.dice.Span(100*time.Microsecond, 100*time.Millisecond))
	}
	p.judge.watch()
	for side, s := range p.sides {
		if s.gone() {
			if err := p.bury(side); err != nil { // it may have ended just now
				return true, err
			}
			if armed {
				p.arm(side)
			}
			if err := p.start(side); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

// bury judges a life that is over.
func (p *pair) bury(side int) error {
	p.board.arm(side, 0)
	s := p.sides[side]
	if s.judged {
		return nil
	}
	p.counts.kills.Add(1)
	p.tell("life %d of side %d is over", s.Life, side)
	if !s.wasKilled() {
		p.judge.violate(said{side: side, own: s.Life}, ended, s.cmd.ProcessState.String())
		return fmt.Errorf("side %d, life %d: %v", side, s.Life, s.cmd.ProcessState)
	}
	p.judgeOver(s)
	return nil
}

func (p *pair) judgeOver(s *process) {
	if !s.judged {
		s.judged = true
		p.judge.over(s)
	}
}

// work waits until the pair works again, or one of the sides was killed by a trigger that was armed before.
func (p *pair) work(since instant) (killed bool, err error) {
	for side := range p.sides {
		p.board.arm(side, 0)
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		p.judge.read()
		from := since
		for _, s := range p.sides {
			if s.gone() {
				return true, nil
			}
			if s.ready == 0 {
				from = 0
				break
			}
			from = max(from, s.ready)
		}
		if from != 0 {
			if at := p.judge.workedAt(from); at != 0 {
				took := at.sub(from)
				p.counts.worked(took)
				if took > p.o.within {
					p.judge.violate(said{}, noProgress, fmt.Sprintf("for %v: %s", took, strings.Join(p.story, "; ")))
				}
				return false, nil
			}
		}
		if from != 0 && now().sub(from) > p.o.within || time.Since(began) > p.o.within+patience {
			p.judge.violate(said{}, noProgress, strings.Join(p.story, "; "))
			return false, fmt.Errorf("nothing goes on any more")
		}
	}
}
