package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// rateFlag is a flag whose value is an amount per second.
type rateFlag struct {
	text  string
	bytes uint64 // 0: no limit
}

func (f *rateFlag) String() string { return f.text }

func (f *rateFlag) Set(s string) (err error) {
	f.bytes, err = parseRate(s)
	f.text = s
	return err
}

// mostRate is more than any network has, and few enough bytes to reckon with.
const mostRate = 1e15

// parseRate reads a rate in bits or bytes per second: 1Gbit, 1Gbps, 2.5Mbit/s, 100MB. Its units are
// those of networks, powers of ten.
func parseRate(s string) (bytesPerSecond uint64, err error) {
	need := errors.New("need bits or bytes per second, such as 1Gbit, 2.5Mbit or 100MB")
	digits, perUnit := strings.TrimSuffix(s, "/s"), 0.0
	for unit, bytes := range map[string]float64{"bit": 1. / 8, "bps": 1. / 8, "B": 1} {
		if rest, found := strings.CutSuffix(digits, unit); found {
			digits, perUnit = rest, bytes
			break
		}
	}
	for i, prefix := range "kMGT" {
		if rest, found := strings.CutSuffix(digits, string(prefix)); found {
			digits = rest
			perUnit *= math.Pow10(3 * (i + 1))
			break
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	rate := n * perUnit
	switch {
	case err == nil && perUnit == 0:
		given := strings.TrimSuffix(s, "/s")
		return 0, fmt.Errorf("bits or bytes per second? Say %sbit or %[1]sB", given)
	case err != nil || perUnit == 0 || strings.ContainsAny(digits, "xXpPnN_"):
		return 0, need
	case !(rate >= 1 && rate <= mostRate):
		return 0, fmt.Errorf("need 8bit to %.0fTB a second", mostRate/1e12)
	}
	return uint64(rate), nil
}

// sweepFlag is a flag whose value is sizes from one to another.
type sweepFlag struct{ from, to uint64 }

func (f *sweepFlag) String() string {
	if f.from == 0 {
		return ""
	}
	return fmt.Sprintf("%v..%v", &sizeFlag{value: f.from}, &sizeFlag{value: f.to})
}

func (f *sweepFlag) Set(s string) error {
	from, to, found := strings.Cut(s, "..")
	first, errFrom := parseSize(from)
	last, errTo := parseSize(to)
	if found && errFrom == nil && errTo == nil && last < first {
		return fmt.Errorf("need the smaller size first: %s..%s", to, from)
	}
	if !found || errFrom != nil || errTo != nil || first < 1 || last < first || last > 1<<30 {
		return errors.New("need sizes from 1 to 1G, such as 64..1M")
	}
	f.from, f.to = first, last
	return nil
}

// sizes are those to measure.
func (f *sweepFlag) sizes() (all []uint32) {
	for size := f.from; size <= f.to; size *= 2 {
		all = append(all, uint32(size))
	}
	return all
}
