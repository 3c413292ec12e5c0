"""Attacks, faults and bad inputs: what jlr meets where it is used, and what must hold there.

- Attacks, `test_<topic>.py`: a hostile user, host, image, page or network at work. A test plays the
  attacker and fails where the attack succeeds. docs/security.md lists them.
- Faults, `test_faults.py` and `test_interruptions.py`: parts that break, each with its bound in
  time and with what must not be lost. docs/outages.md lists them.
- Inputs, `test_inputs.py`: argument lists that nobody would type. No traceback, no bug, no hang.

Tests of one module's defect lie beside that module's other tests; both tables name those too.
"""
