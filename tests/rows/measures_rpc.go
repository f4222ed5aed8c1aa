package main

import (
	"context"
	"strconv"
)

// callsOf are calls that travel in one way, alternated within a run with those in another one: both are carried out by one client
// at one server, in the same memory.
func callsOf(load string, atOnce int, ours, theirs string, figure func(perSecond float64) float64) measure {
	return func(_ context.Context, g *rig) (result, error) {
		host := g.row.place.address(server).String()
		s := g.child(server, "serve-calls", host)
		s.sockets = 3
		o, err := g.programs(s, g.child(client, "call", host, load, strconv.Itoa(atOnce), seconds(g.opt.long), ours, theirs))
		r := result{ours: figure(number(o, "ours")), theirs: figure(number(o, "theirs"))}
		if load != doNull {
			const megabytes = callBlock / 1e6 // of a call
			r.oursCPU, r.theirsCPU = number(o, "ours_cpu_us")/megabytes, number(o, "theirs_cpu_us")/megabytes
		}
		return r, err
	}
}

// What a number of calls in a second is.
func thousands(perSecond float64) float64 { return perSecond / 1e3 }
func megabytes(perSecond float64) float64 { return perSecond * callBlock / 1e6 }

// microseconds is how long each takes, one at a time.
func microseconds(perSecond float64) float64 { return 1e6 / perSecond }
