package durable

import "fmt"

// given records which options of one call were given. Each bit is one option, or several options that exclude each other. It
// exists because the last of two such options would otherwise win without an error.
type given uint16

// once records the option. It returns ErrInvalidConfig if an option with the same bit was recorded before.
func (g *given) once(bit given, option string) error {
	if *g&bit != 0 {
		return fmt.Errorf("%w: the option %s is given twice, or beside another that it excludes: leave one of them out", ErrInvalidConfig, option)
	}
	*g |= bit
	return nil
}
