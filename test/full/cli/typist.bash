# Loads a completion script, and prints the completions of each line, sorted.
source "$1"
shift
compopt() { isDefault=; }
for line; do
  read -ra COMP_WORDS <<< "$line"
  [[ $line == *' ' ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) isDefault=1
  _assay
  # Bash adds the files itself where the function finds nothing and has not forbidden it.
  [[ $isDefault && ${#COMPREPLY[@]} = 0 ]] && COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
  printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | xargs
done
