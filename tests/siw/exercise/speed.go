package exercise

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Speed measures 10 MiB of reads past the cache, 1,000 stats and 1,000 creates in each of several directories, in turn, n times. It
// prints, for each kind of work, the median of each directory and its ratio to that of the last one.
func Speed(directories []string, n int) error {
	type work struct {
		name string
		do   func(dir string, round int) error
	}
	works := []work{
		{"10 MiB of direct reads", directReads},
		{"1,000 stats", stats},
		{"1,000 creates", creates},
	}
	for _, dir := range directories {
		if err := os.WriteFile(filepath.Join(dir, "big"), Pattern(1, 10<<20), 0o644); err != nil {
			return err
		}
	}
	for _, w := range works {
		took := make([][]time.Duration, len(directories))
		for round := range n {
			for i, dir := range directories {
				begun := time.Now()
				if err := w.do(dir, round); err != nil {
					return fmt.Errorf("%s in %s: %w", w.name, dir, err)
				}
				took[i] = append(took[i], time.Since(begun))
				if err := os.RemoveAll(filepath.Join(dir, "created")); err != nil {
					return err
				}
			}
		}
		last := median(took[len(took)-1])
		for i, dir := range directories {
			m := median(took[i])
			fmt.Printf("%s in %s: %.1f ms (%.1f to %.1f), ratio %.2f\n", w.name, dir, ms(m), ms(slices.Min(took[i])), ms(slices.Max(took[i])), float64(m)/float64(last))
		}
	}
	return nil
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func directReads(dir string, _ int) error {
	f, err := os.OpenFile(filepath.Join(dir, "big"), os.O_RDONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1<<20)
	for at := int64(0); at < 10<<20; at += int64(len(b)) {
		if _, err := f.ReadAt(b, at); err != nil {
			return err
		}
	}
	return nil
}

// stats needs a mount whose attributes are not kept (noac).
func stats(dir string, _ int) error {
	for range 1000 {
		if _, err := os.Stat(filepath.Join(dir, "big")); err != nil {
			return err
		}
	}
	return nil
}

func creates(dir string, round int) error {
	of := filepath.Join(dir, "created")
	if err := os.Mkdir(of, 0o777); err != nil {
		return err
	}
	for i := range 1000 {
		f, err := os.OpenFile(filepath.Join(of, fmt.Sprint(round, ".", i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
