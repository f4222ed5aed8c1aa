package namespace

import (
	"errors"
	"fmt"
	"os"
)

// OpenFabric makes two namespaces that each have a cable to a third one, and opens the ports there, on
// which everything arrives that they send. The third lasts as long as its ports.
func OpenFabric(mtu int) (p [2]*Namespace, ports [2]*os.File, err error) {
	fabric, err := Open()
	if err != nil {
		return p, ports, err
	}
	defer fabric.Close()
	for side := 0; side < len(p) && err == nil; side++ {
		if p[side], err = Open(); err != nil {
			break
		}
		port := fmt.Sprintf("port%d", side)
		if err = Join(p[side], fabric, Device, port, mtu, FirstNumber); err != nil {
			break
		}
		err = errors.Join(p[side].SwitchOff(Device, Offloads), fabric.SwitchOff(port, Offloads), p[side].AddSide(side))
		if err == nil {
			ports[side], err = fabric.OpenPort(port)
		}
	}
	if err != nil {
		for _, n := range p {
			if n != nil {
				n.Close()
			}
		}
		for _, f := range ports {
			if f != nil {
				f.Close()
			}
		}
	}
	return p, ports, err
}
