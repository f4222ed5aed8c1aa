package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// TurnsBeside is how many turns each carrier has, where they are compared: enough for a
// median and a spread.
const TurnsBeside = 5

// Turn is a whole turn of one carrier.
type Turn struct {
	Contender
	Bytes uint64 // that arrived, both ways
	Took  time.Duration
	CPU   time.Duration // of the processes of both ends
	Waits uint64        // how often their threads gave up a processor to wait
}

// Per1000 returns how much of something there was for 1000 bytes that arrived.
func (t Turn) Per1000(n float64) float64 {
	if t.Bytes == 0 {
		return 0
	}
	return 1000 * n / float64(t.Bytes)
}

// PerSecond returns how many bytes arrived in a second.
func (t Turn) PerSecond() float64 {
	if t.Took <= 0 {
		return 0
	}
	return float64(t.Bytes) / t.Took.Seconds()
}

// Spread is what the turns of one carrier had; the zero Spread: there were none.
type Spread struct {
	Turns               int
	Median, Least, Most float64
}

// Spread returns what a contender's turns had of something.
func (o *Outcome) Spread(c Contender, of func(Turn) float64) (s Spread) {
	var all []float64
	for _, t := range o.Turns {
		if t.Contender == c {
			all = append(all, of(t))
		}
	}
	return spreadOf(all)
}

func spreadOf(all []float64) (s Spread) {
	if len(all) == 0 {
		return s
	}
	all = slices.Sorted(slices.Values(all))
	half := len(all) / 2
	return Spread{len(all), (all[half] + all[(len(all)-1)/2]) / 2, all[0], all[len(all)-1]}
}

// note adds a whole turn, and what the machines did meanwhile.
func (o *Outcome) note(c Contender, bytes uint64, took time.Duration, mine, theirs *Counts) {
	t := Turn{c, bytes, took, time.Duration(mine.CPU), mine.Waits}
	if mine.Process != theirs.Process {
		t.CPU += time.Duration(theirs.CPU)
		t.Waits += theirs.Waits
	}
	o.Turns = append(o.Turns, t)
	o.hereAll.add(mine)
	o.thereAll.add(theirs)
}

// Machines returns what this machine did besides, and the server's, which may be the same.
func (o *Outcome) Machines() (here, there Machine) {
	here = ThisMachine()
	here.Others = othersBeside(&o.hereAll, &o.thereAll)
	if o.hereAll.Machine == o.thereAll.Machine {
		return here, here
	}
	return here, Machine{Processors: int(o.thereAll.Processors), Others: othersBeside(&o.thereAll, &o.hereAll)}
}

// choose tries the controllers that a carrier can have, notes which is the fastest, and returns the contenders that are to have turns: it
// with that one, and with the machine's default if that is another one.
func (c *Turns) choose(ctx context.Context, s session, carrier Carrier, turn time.Duration, o *Outcome) ([]Contender, error) {
	if !carrier.Stream() {
		return []Contender{{Carrier: carrier}}, nil
	}
	found := FindControllers()
	choice := Choice{Carrier: carrier, Controller: found.Default, Default: found.Default}
	switch wanted := cmp.Or(c.Congestion, FastestController); wanted {
	case DefaultController:
	case FastestController:
		choice.Refused = found.Refused
		if len(found.Usable) > 1 {
			trials, err := c.try(ctx, s, carrier, &found, turn)
			if err != nil {
				return nil, err
			}
			choice.Trials = FastestFirst(trials)
			choice.Controller = choice.Trials[0].Controller
		}
	default:
		if err := tryController(wanted); err != nil && wanted != found.Default {
			return nil, &CarrierError{carrier, &ControllerError{RefusedController{wanted, err}, found.Usable}}
		}
		choice.Controller = wanted
	}
	o.Choices = append(o.Choices, choice)
	contenders := []Contender{{carrier, found.set(choice.Controller)}}
	if choice.Controller != choice.Default {
		contenders = append(contenders, Contender{Carrier: carrier})
	}
	return contenders, nil
}

// try has the carrier move the memory of the plan for a short time with each usable controller in turn, [TrialRounds] times.
func (c *Turns) try(ctx context.Context, s session, carrier Carrier, found *Controllers, turn time.Duration) (trials []Trial, err error) {
	for range TrialRounds {
		for _, name := range found.Usable {
			tried := NewOutcome()
			if err := c.rivalTurn(ctx, s, Contender{carrier, found.set(name)}, TrialTime(turn), true, tried); err != nil {
				return nil, err
			}
			trials = append(trials, Trial{name, tried.Turns[0].PerSecond()})
		}
	}
	return trials, nil
}

// set returns what a connection is given to have that controller: nothing, if it has it by itself.
func (c *Controllers) set(name string) string {
	if name == c.Default {
		return ""
	}
	return name
}

// rivalTurn lets a contender move the memory of the plan for that long.
func (c *Turns) rivalTurn(ctx context.Context, s session, who Contender, long time.Duration, trial bool, o *Outcome) error {
	carrier := who.Carrier
	p := c.Plan.over(carrier)
	p.MoreRuns, p.Controller = 1, nameController(who.Controller)
	if trial {
		p.Trial = 1
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), long+4*s.giveUp())
	defer cancel()
	there, err := s.begin(bounded, p)
	if err != nil {
		return err
	}
	before := s.counts()
	out, r, err := c.rivalLoad(ctx, bounded, s, p, who, there, long)
	if err != nil {
		err = &CarrierError{carrier, err}
	}
	var mine, theirs Counts
	if out != nil {
		out.report(&mine)
	}
	// What began has to end, also if it failed.
	if ended := s.end(bounded, &mine, &theirs); ended == nil {
		s.thank(bounded)
	} else {
		err = cmp.Or(err, ended)
	}
	if err != nil {
		return err
	}
	s.counts().since(before, &mine)
	arrived, took := mine.Bytes+r.arrived(), time.Duration(mine.Nanoseconds)
	if carrier.OneWay() {
		arrived, took = theirs.Arrived, time.Duration(theirs.Arriving)
	}
	o.note(who, arrived, took, &mine, &theirs)
	serverSetsIt := there.Uncontrolled == 0 && there.Knows&knowsController != 0
	if who.Controller != "" && !trial && !serverSetsIt {
		o.uncontrolled(carrier)
	}
	return nil
}

// uncontrolled notes that the server sends with its machine's default controller.
func (o *Outcome) uncontrolled(carrier Carrier) {
	for i := range o.Choices {
		if o.Choices[i].Carrier == carrier {
			o.Choices[i].ClientOnly = true
		}
	}
}

// rivalLoad runs this side of a rival.
func (c *Turns) rivalLoad(ctx, bounded context.Context, s session, p Plan, who Contender, there Ready, long time.Duration) (*Load, rival, error) {
	switch {
	case there.Knows&knowsCarrier == 0:
		return nil, nil, ErrNoCarrier
	case there.Refused != 0:
		return nil, nil, ErrRefused
	}
	memory := make([]byte, slotAlignment) // for the end of what does not come
	if p.BothWays != 0 {
		memory = p.memory(s.bytes())
	}
	r, err := who.dial(ctx, s.here(), s.there(), there.Port, s.wire(), memory)
	if ctx.Err() != nil && err != nil {
		return nil, nil, fmt.Errorf("%w before it began", ErrInterrupted)
	}
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	writes := p
	if c.Receive {
		writes.Depth, writes.Active = 0, 0
	}
	out := NewLoad(writes, r, nil)
	out.Start(long)
	leave := s.stay(func(err error) {
		out.fail(err)
		r.Close() // whoever posts waits for room
	})
	err = out.Over(ctx)
	err = cmp.Or(err, out.Drain(bounded))
	leave()
	return out, r, err
}

// serveRival serves a run that another carrier carries.
func (s *Runs) serveRival(ctx context.Context, p Plan, c attended) error {
	ready := Ready{Knows: knowsAll}
	controller, known := p.Controller.served()
	if !known {
		ready.Uncontrolled, controller = 1, ""
	}
	a, failed := p.Carrier.await(c.here(), c.wire(), controller)
	if failed != nil {
		ready.Refused = 1
		failed = fmt.Errorf("comparison with %v: %w", p.Carrier, failed)
	} else {
		ready.Port = a.port()
		defer a.stop()
	}
	before := c.counts()
	began := time.Now()
	if err := c.ready(ctx, &ready); err != nil {
		return err
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	var saw Counts
	served := make(chan error, 1)
	if a != nil {
		go func() { served <- meetRival(bounded, a, p, c, &saw) }()
	} else {
		served <- nil
	}
	told, err := c.ended(ctx, nil)
	took := told.took(time.Since(began))
	if a != nil {
		a.stop()
	}
	if err != nil {
		cancel()
	}
	late := time.AfterFunc(streamPatience, cancel) // a client that said so has ended it
	defer late.Stop()
	if broken := <-served; broken != nil && failed == nil {
		failed = fmt.Errorf("comparison with %v: %w", p.Carrier, broken)
	}
	if err != nil {
		return err
	}
	c.counts().since(before, &saw)
	if s.Ran != nil && p.Trial == 0 {
		s.Ran(Run{c.name(), p, saw, took})
	}
	return cmp.Or(failed, c.deliver(ctx, &saw))
}

// meetRival runs the server's side of a rival until the client ends it.
func meetRival(ctx context.Context, a acceptor, p Plan, c attended, saw *Counts) error {
	r, err := a.accept(ctx, c.there(), p.memory(c.bytes()))
	if err != nil {
		return err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { r.Close() })()
	writes := p
	if p.BothWays == 0 {
		writes.Depth, writes.Active = 0, 0
	}
	out := NewLoad(writes, r, nil)
	out.Start(0)
	<-r.over()
	err = out.Drain(ctx)
	out.report(saw)
	saw.Arrived, saw.Arriving = r.arrived(), r.arriving()
	return err
}
